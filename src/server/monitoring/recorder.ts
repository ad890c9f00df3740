import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { errorCatalogue, type PlantStoreError } from '../../plants/errors/errors';
import { requestFields } from '../../plants/http/failure-log';
import { notesOf, pathOf } from '../../plants/http/request';
import { createAddressReader, formatAddress } from './client-address';
import { escapeInvisible } from './log-text';
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
  private readonly readAddress: (request: IncomingMessage) => string | undefined;
  /** Whether each response is logged, and not only rejected tokens (OWASP ASVS 5.0, 16.3). */
  private readonly hasAccessLog: boolean;
  private nextWarningAt = 0;

  constructor(
    private readonly metrics: Metrics,
    private readonly logger: Logger,
    settings: { readonly accessLog: boolean; readonly trustedProxies: readonly string[] },
  ) {
    this.hasAccessLog = settings.accessLog;
    this.readAddress = createAddressReader(settings.trustedProxies);
  }

  /**
   * Records an error that was sent on a socket, because the HTTP parser rejected the request.
   * @param response the response that it replaces, if the headers of its request were received
   */
  recordOnSocket(
    error: PlantStoreError,
    requestId: string,
    socket: Socket,
    response: ServerResponse | undefined,
  ): void {
    this.metrics.countError(error);
    if (response) this.sentOnSocket.add(response);
    if (!this.hasAccessLog) return;
    const { remoteAddress } = socket;
    const ip = remoteAddress === undefined ? undefined : formatAddress(remoteAddress);
    const status = error.getStatus();
    this.logger.info({ requestId, ip, status, error: error.error }, 'request');
  }

  /** Records a response, which has not been sent yet. */
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
      ip: this.readAddress(request.raw),
      method: request.method,
      path: escapeInvisible(pathOf(request.originalUrl)),
      caller: caller && escapeInvisible(caller.name),
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
