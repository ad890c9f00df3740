import type { Channel } from 'node:diagnostics_channel';
import type { IncomingMessage } from 'node:http';
import proxyAddress from '@fastify/proxy-addr';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { Caller } from '../plants';
import { errorChannel, type ErrorEvent, pathOf } from '../plants/program';
import { isCreation, successOf } from './creation';
import { type Refusal, refusalChannel } from './refusal';
import { type LoggedRequest, requestFields } from './request-context';

/** What guard and pipe have found out about a request. */
type KnownRequest = FastifyRequest & { readonly caller?: Caller; readonly plantId?: bigint };

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
  const outcomes = new WeakMap<IncomingMessage, string>();
  const write = (request: LoggedRequest, caller: Partial<Caller> = {}, fields: object): void => {
    const { method, url = '' } = request.raw;
    const ip = addresses.get(request.raw) ?? proxyAddress(request.raw, isTrusted);
    const { name, issuer } = caller;
    const head = { ...requestFields(request), ip, method, path: pathOf(url), caller: name, issuer };
    logger.info({ ...head, outcome: outcomes.get(request.raw), ...fields }, 'request');
  };
  const rememberOutcome = (message: unknown): void => {
    const { error, request } = message as ErrorEvent;
    if (error.outcome && request && isCreation(request)) outcomes.set(request, error.outcome);
  };
  const writeRefusal = (message: unknown): void => {
    const { request: raw, requestId: id, status } = message as Refusal;
    write({ id, raw }, {}, { status, ms: 0 });
  };
  subscribe(instance, errorChannel, rememberOutcome);
  subscribe(instance, refusalChannel, writeRefusal);
  instance.addHook('onRequest', ({ raw }, _reply, done) => {
    // A connection that its client has closed has no address any more.
    addresses.set(raw, proxyAddress(raw, isTrusted));
    done();
  });
  instance.addHook('onResponse', (request: KnownRequest, reply, done) => {
    const { statusCode: status, elapsedTime: ms } = reply;
    // A string, because programs that read logs round numbers beyond 2^53.
    const id = request.plantId?.toString();
    const success = status === 200 && isCreation(request.raw) && { outcome: successOf(reply) };
    write(request, request.caller, { status, ms, id, ...success });
    done();
  });
}

/** Subscribes to a channel until the server closes. */
function subscribe(
  instance: FastifyInstance,
  channel: Channel,
  listener: (message: unknown) => void,
): void {
  channel.subscribe(listener);
  instance.addHook('onClose', (_instance, done) => {
    channel.unsubscribe(listener);
    done();
  });
}
