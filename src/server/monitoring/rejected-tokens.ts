import { Logger } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { errorCatalogue } from '../../plants/errors/errors';
import { requestFields } from '../../plants/http/failure-log';
import type { RequestNotes } from '../../plants/http/request';

/** The minimum time between two lines about the same address and reason. */
const LINE_INTERVAL_MS = 60_000;

/** The maximum number of addresses and reasons logged separately within that time. A client may have many addresses. */
const MAX_KINDS = 100;

const { invalidToken, forbidden } = errorCatalogue;

/**
 * Logs rejected tokens with the client address and the reason: OWASP ASVS 5.0, 16.3.1 and 16.3.2. Requests
 * without a token are not logged.
 */
export class RejectedTokenLog {
  private readonly logger = new Logger('Authentication');
  /** The addresses and reasons that were logged in the current interval. */
  private readonly logged = new Set<string>();
  private intervalEnd = 0;

  write(
    request: FastifyRequest,
    address = 'an unknown address',
    { caller, failure }: RequestNotes,
  ): void {
    if (failure?.error !== invalidToken.error && failure?.error !== forbidden.error) return;
    const now = performance.now();
    if (now >= this.intervalEnd) {
      this.logged.clear();
      this.intervalEnd = now + LINE_INTERVAL_MS;
    }
    let kind = `from ${address}: ${failure.error} ${failure.message}`;
    if (this.logged.size >= MAX_KINDS && !this.logged.has(kind)) kind = 'from further addresses.';
    if (this.logged.has(kind)) return;
    this.logged.add(kind);
    const fields = { ...requestFields(request), caller: caller?.name };
    this.logger.warn(`Rejected a token ${kind}`, fields);
  }
}
