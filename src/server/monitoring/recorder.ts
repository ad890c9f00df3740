import type { ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { errorCatalogue, type PlantStoreError } from '../../plants/errors/errors';
import { requestFields } from '../../plants/http/failure-log';
import { notesOf, pathOf } from '../../plants/http/request';
import type { Metrics } from './metrics';

declare module 'fastify' {
  interface FastifyRequest {
    /** When the request was received, by `performance.now()`. Undefined once its response is recorded. */
    receivedAt?: number | undefined;
  }
}

const { invalidToken, forbidden } = errorCatalogue;
const TOKEN_ERRORS: readonly (number | undefined)[] = [invalidToken.error, forbidden.error];

const WARNING_INTERVAL_MS = 1000;

/** Records each response in the metrics and the logs, whether or not its client still listens. */
export class Recorder {
  private readonly sentOnSocket = new WeakSet<ServerResponse>();
  private nextWarningAt = 0;

  /** @param hasAccessLog whether each response is logged, and not only rejected tokens (OWASP ASVS 5.0, 16.3) */
  constructor(
    private readonly metrics: Metrics,
    private readonly logger: Logger,
    private readonly hasAccessLog: boolean,
  ) {}

  /** Counts an error that was sent on the socket, instead of the response to a request if it has one. */
  recordOnSocket(error: PlantStoreError, response: ServerResponse | undefined): void {
    this.metrics.countError(error);
    if (response) this.sentOnSocket.add(response);
  }

  record(request: FastifyRequest, reply: FastifyReply): void {
    // Fastify determines another response if it cannot send the first one.
    if (request.receivedAt === undefined || this.sentOnSocket.has(reply.raw)) return;
    const duration = performance.now() - request.receivedAt;
    request.receivedAt = undefined;
    const notes = notesOf(request);
    const { caller, plantId, outcome, failure } = notes;
    this.metrics.countRequest(request, reply.statusCode, duration, notes);
    const isWarning =
      TOKEN_ERRORS.includes(failure?.error) && performance.now() >= this.nextWarningAt;
    if (!this.hasAccessLog && !isWarning) return;
    const line = {
      ...requestFields(request),
      // Undefined if the client has disconnected, or a trusted proxy forwarded something else.
      ip: isIP(request.ip) > 0 ? request.ip : undefined,
      method: request.method,
      path: pathOf(request.originalUrl),
      caller: caller?.name,
      issuer: caller?.issuer,
      // A string, because programs that parse logs round numbers above 2^53.
      id: plantId?.toString(),
      outcome,
      status: reply.statusCode,
      error: failure?.error,
      // Rounded to the microsecond.
      ms: Math.round(duration * 1000) / 1000,
    };
    if (this.hasAccessLog) {
      this.logger.info(line, 'request');
    } else {
      this.nextWarningAt = performance.now() + WARNING_INTERVAL_MS;
      this.logger.warn(line, `Rejected a token: ${failure?.message}`);
    }
  }
}
