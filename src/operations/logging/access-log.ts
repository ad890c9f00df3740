import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { Caller } from '../../auth';
import { pathOf } from '../../http';
import {
  createPlantRoute,
  type CreationEvent,
  creationChannel,
  type CreationOutcome,
} from '../../plants';
import { requestFields } from './request-context';

/** Outcomes of the creations that are answered before the operation sees them, by status. */
const earlyOutcomes: Partial<Record<number, CreationOutcome>> = { 400: 'invalid', 503: 'refused' };

/**
 * Writes one line a request, once it is answered. That of a creation says who created what, and with
 * which outcome.
 */
export function logAccess(instance: FastifyInstance, logger: Logger): void {
  const creations = new WeakMap<object, CreationEvent>();
  const remember = (message: unknown): void => {
    const event = message as CreationEvent;
    creations.set(event.request, event);
  };
  creationChannel.subscribe(remember);
  instance.addHook('onClose', (_instance, done) => {
    creationChannel.unsubscribe(remember);
    done();
  });
  instance.addHook('onResponse', (request, reply, done) => {
    const { method, url } = request;
    logger.info(
      {
        ...requestFields(request),
        method,
        path: pathOf(url),
        status: reply.statusCode,
        ms: reply.elapsedTime,
        ...callerFields(request),
        ...creationFields(creations.get(request), request, reply),
      },
      'request',
    );
    done();
  });
}

/** Fields without a value are left out of the line. */
function callerFields({ caller }: FastifyRequest & { caller?: Caller }): object {
  return { caller: caller?.name, issuer: caller?.issuer };
}

/** The id is a string, because programs that read logs round numbers beyond 2^53. */
function creationFields(
  event: CreationEvent | undefined,
  { method, routeOptions }: FastifyRequest,
  { statusCode }: FastifyReply,
): object {
  if (event) return { id: event.id?.toString(), outcome: event.outcome };
  const isCreation =
    method === createPlantRoute.method && routeOptions.url === createPlantRoute.url;
  return isCreation ? { outcome: earlyOutcomes[statusCode] } : {};
}
