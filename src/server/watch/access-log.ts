import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import proxyAddress from '@fastify/proxy-addr';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { requestFields } from '../../plants/http/failure-log';
import { pathOf } from '../../plants/http/request';
import type { CompletedRequest, Responses } from './responses';

/**
 * Writes one line a request, once it is answered. It says from which address the request came. That of
 * a creation says who created what, and with which outcome.
 *
 * @param trustedProxies addresses and ranges of proxies whose `X-Forwarded-For` counts
 */
export function logAccess(
  instance: FastifyInstance,
  responses: Responses,
  logger: Logger,
  trustedProxies: readonly string[],
): void {
  // Fastify's own, because what is refused before a router has no request of Fastify's.
  const isTrusted = proxyAddress.compile([...trustedProxies]);
  const addresses = new WeakMap<IncomingMessage, string>();
  instance.addHook('onRequest', ({ raw }, _reply, done) => {
    // A connection that its client has closed has no address any more.
    addresses.set(raw, proxyAddress(raw, isTrusted));
    done();
  });
  responses.on('completed', (request: CompletedRequest) => {
    const { raw, caller, plantId, failure, outcome, status, ms } = request;
    const address = addresses.get(raw) ?? proxyAddress(raw, isTrusted);
    const fields = {
      // A trusted proxy may pass on any text.
      ip: isIP(address) ? address : undefined,
      method: raw.method,
      path: pathOf(raw.url ?? ''),
      caller: caller?.name,
      issuer: caller?.issuer,
      // A string, because programs that read logs round numbers beyond 2^53.
      id: plantId?.toString(),
      outcome,
      status,
      error: failure?.error,
      // To the microsecond.
      ms: Math.round(ms * 1000) / 1000,
    };
    logger.info({ ...requestFields(request), ...fields }, 'request');
  });
}
