import type { IncomingMessage } from 'node:http';
import proxyAddress from '@fastify/proxy-addr';
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
 * Writes one line a request, once it is answered. It says from which address the request came. That of
 * a creation says who created what, and with which outcome.
 *
 * @param trustedProxies addresses and ranges of proxies whose `X-Forwarded-For` counts
 */
export function logAccess(
  instance: FastifyInstance,
  logger: Logger,
  trustedProxies: readonly string[],
): void {
  // Fastify's own, because what is refused before a router has no request of Fastify's.
  const isTrusted = proxyAddress.compile([...trustedProxies]);
  const addresses = new WeakMap<IncomingMessage, string>();
  const creations = new WeakMap<object, CreationEvent>();
  const remember = (message: unknown): void => {
    creations.set((message as CreationEvent).request, message as CreationEvent);
  };
  creationChannel.subscribe(remember);
  const write = (
    request: LoggedRequest,
    status: number,
    { name: caller, issuer }: Partial<Caller> = {},
    fields: object,
  ): void => {
    const { method = '', url = '' } = request.raw;
    const ip = addresses.get(request.raw) ?? proxyAddress(request.raw, isTrusted);
    const head = { ip, method, path: pathOf(url), status, caller, issuer };
    logger.info({ ...requestFields(request), ...head, ...fields }, 'request');
  };
  const writeRefusal = (message: unknown): void => {
    const { request: raw, requestId: id, status, caller } = message as Refusal;
    write({ id, raw }, status, caller, { ms: 0, ...earlyOutcome(raw, status) });
  };
  refusalChannel.subscribe(writeRefusal);
  instance.addHook('onRequest', ({ raw }, _reply, done) => {
    // A connection that its client has closed has no address any more.
    addresses.set(raw, proxyAddress(raw, isTrusted));
    done();
  });
  instance.addHook('onResponse', (request: FastifyRequest & { caller?: Caller }, reply, done) => {
    const { caller, raw } = request;
    const creation = creations.get(request);
    write(request, reply.statusCode, caller, {
      ms: reply.elapsedTime,
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
