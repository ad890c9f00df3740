import { isIP } from 'node:net';
import proxyAddress from '@fastify/proxy-addr';
import { Logger } from '@nestjs/common';
import { errorCatalogue } from '../../plants/errors/errors';
import { LogThrottle, requestFields } from '../../plants/http/failure-log';
import type { Responses } from './responses';

/** Milliseconds between two lines about one address and one reason. */
const LINE_INTERVAL_MS = 60_000;

/** Addresses and reasons that have lines of their own within that time; a client may have many addresses. */
const MAX_KINDS = 100;

/**
 * Logs from which addresses tokens come that are rejected, and why: OWASP ASVS 5.0, 16.3.1 and 16.3.2.
 * A request without a token is not logged.
 *
 * @param trustedProxies addresses and ranges of proxies whose `X-Forwarded-For` counts
 */
export function logRejectedCredentials(
  responses: Responses,
  trustedProxies: readonly string[],
): void {
  const logger = new Logger('Authentication');
  const isTrusted = proxyAddress.compile([...trustedProxies]);
  const throttle = new LogThrottle<string>(
    1,
    (kind, count) => {
      logger.warn(`Rejected ${count} more tokens within a minute, ${kind}`);
    },
    LINE_INTERVAL_MS,
  );
  responses.on('completed', (request) => {
    const { failure, raw, caller } = request;
    const { invalidToken, forbidden } = errorCatalogue;
    if (failure?.error !== invalidToken.error && failure?.error !== forbidden.error) return;
    const address = proxyAddress(raw, isTrusted);
    const from = isIP(address) ? address : 'an unknown address';
    const kind =
      throttle.kinds < MAX_KINDS
        ? `from ${from}: ${failure.error} ${failure.message}`
        : 'from further addresses.';
    if (throttle.admit(kind)) {
      logger.warn(`Rejected a token ${kind}`, { ...requestFields(request), caller: caller?.name });
    }
  });
}
