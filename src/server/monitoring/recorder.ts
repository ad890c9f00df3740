import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { PlantStoreError } from '../../plants/errors/errors';
import { requestFields } from '../../plants/http/failure-log';
import { notesOf, pathOf } from '../../plants/http/request';
import { parseAddress } from './client-address';
import type { Metrics } from './metrics';
import { RejectedTokenLog } from './rejected-tokens';

declare module 'fastify' {
  interface FastifyRequest {
    /** When the request was received, by `performance.now()`. Undefined once its response is recorded. */
    receivedAt?: number | undefined;
  }
}

/**
 * Records each response in the metrics and the logs when it is determined, whether or not its client still
 * listens.
 */
export class Recorder {
  private readonly sentOnSocket = new WeakSet<ServerResponse>();
  private readonly rejectedTokens = new RejectedTokenLog();

  /** @param accessLog gets a line for each response. Undefined if there is no access log */
  constructor(
    readonly metrics: Metrics,
    private readonly accessLog: Logger | undefined,
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
    if (!failure && !this.accessLog) return;
    // Undefined if the client has disconnected, or a trusted proxy forwarded something else.
    const address = parseAddress(request.ip);
    if (failure) this.rejectedTokens.write(request, address, notes);
    if (!this.accessLog) return;
    const fields = {
      ip: address,
      method: request.method,
      path: pathOf(request.url),
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
    this.accessLog.info({ ...requestFields(request), ...fields }, 'request');
  }
}
