import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { requestFields } from '../../plants/http/failure-log';
import { notesOf, pathOf } from '../../plants/http/request';
import { parseAddress } from './client-address';
import type { Metrics } from './metrics';
import { RejectedTokenLog } from './rejected-tokens';

/** Records each response in the metrics and the logs. */
export class Recorder {
  private readonly rejectedTokens = new RejectedTokenLog();

  /** @param accessLog gets a line for each response. Undefined if there is no access log */
  constructor(
    readonly metrics: Metrics,
    private readonly accessLog: Logger | undefined,
  ) {}

  /** Records a response. */
  record(request: FastifyRequest, reply: FastifyReply): void {
    const notes = notesOf(request);
    const { caller, plantId, outcome, failure } = notes;
    this.metrics.countRequest(request, reply, notes);
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
      ms: Math.round(reply.elapsedTime * 1000) / 1000,
    };
    this.accessLog.info({ ...requestFields(request), ...fields }, 'request');
  }
}
