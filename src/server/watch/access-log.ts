import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import proxyAddress from '@fastify/proxy-addr';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { requestFields } from '../../plants/http/failure-log';
import { pathOf } from '../../plants/http/request';
import type { CompletedRequest, Responses } from './responses';

/**
 * Logs one line per request when its response is sent, with the client address. For create requests, the
 * line also has the caller, the plant id and the outcome.
 *
 * @param trustedProxies addresses and ranges of proxies whose `X-Forwarded-For` is trusted
 */
export function logAccess(
  instance: FastifyInstance,
  responses: Responses,
  logger: Logger,
  trustedProxies: readonly string[],
): void {
  // The package that Fastify uses, because a request rejected before routing has no Fastify request.
  const isTrusted = proxyAddress.compile([...trustedProxies]);
  const addresses = new WeakMap<IncomingMessage, string>();
  instance.addHook('onRequest', ({ raw }, _reply, done) => {
    // Read now: the address is lost if the client closes the connection.
    addresses.set(raw, proxyAddress(raw, isTrusted));
    done();
  });
  responses.on('completed', (request: CompletedRequest) => {
    const { raw, caller, plantId, failure, outcome, status, ms } = request;
    const address = addresses.get(raw) ?? proxyAddress(raw, isTrusted);
    const fields = {
      // Even a trusted proxy may forward an invalid address.
      ip: isIP(address) ? address : undefined,
      method: raw.method,
      path: pathOf(raw.url ?? ''),
      caller: caller?.name,
      issuer: caller?.issuer,
      // A string, because programs that parse logs round numbers above 2^53.
      id: plantId?.toString(),
      outcome,
      status,
      error: failure?.error,
      // Rounded to the microsecond.
      ms: Math.round(ms * 1000) / 1000,
    };
    logger.info({ ...requestFields(request), ...fields }, 'request');
  });
}
