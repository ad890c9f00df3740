import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { Caller } from '../../auth';
import { pathOf } from '../../http';
import {
  type CreationEvent,
  creationChannel,
  type CreationOutcome,
  isCreation,
} from '../../plants';
import { type Refusal, refusalChannel } from '../../server';
import { type LoggedRequest, requestFields } from './request-context';

const EARLY_OUTCOMES: Partial<Record<number, CreationOutcome>> = { 400: 'invalid', 503: 'refused' };

/**
 * Writes one line a request, once it is answered. That of a creation says who created what, and with
 * which outcome.
 */
export function logAccess(instance: FastifyInstance, logger: Logger): void {
  const creations = new WeakMap<object, CreationEvent>();
  const remember = (message: unknown): void => {
    creations.set((message as CreationEvent).request, message as CreationEvent);
  };
  creationChannel.subscribe(remember);
  const write = (request: LoggedRequest, status: number, fields: object): void => {
    const { method = '', url = '' } = request.raw;
    const head = { method, path: pathOf(url), status };
    logger.info({ ...requestFields(request), ...head, ...fields }, 'request');
  };
  const writeRefusal = (message: unknown): void => {
    const { request: raw, requestId: id, status } = message as Refusal;
    write({ id, raw }, status, { ms: 0, ...earlyOutcome(raw, status) });
  };
  refusalChannel.subscribe(writeRefusal);
  instance.addHook('onResponse', (request: FastifyRequest & { caller?: Caller }, reply, done) => {
    const { caller, raw } = request;
    const creation = creations.get(request);
    write(request, reply.statusCode, {
      ms: reply.elapsedTime,
      caller: caller?.name,
      issuer: caller?.issuer,
      // The id is a string, because programs that read logs round numbers beyond 2^53.
      ...(creation
        ? { id: creation.id?.toString(), outcome: creation.outcome }
        : earlyOutcome(raw, reply.statusCode)),
    });
    done();
  });
  instance.addHook('onClose', (_instance, done) => {
    creationChannel.unsubscribe(remember);
    refusalChannel.unsubscribe(writeRefusal);
    done();
  });
}

/** The outcome of a creation that is answered before the operation sees it. */
function earlyOutcome(request: IncomingMessage, status: number): object {
  return isCreation(request) ? { outcome: EARLY_OUTCOMES[status] } : {};
}
