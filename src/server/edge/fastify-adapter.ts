import type { RequestListener } from 'node:http';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { NotFoundError, PlantStoreError } from '../../plants/errors/errors';
import { securityHeaders } from '../../plants/http/error.filter';
import { pathOf } from '../../plants/http/request';
import { PLANTS_PATH } from '../../plants/plants.controller';
import type { Responses } from '../watch/responses';
import { Connections } from './connections';
import { corsHeaders, isPreflight, OriginLog, PREFLIGHT_HEADERS } from './cors';
import type { Settings } from '../settings/environment';
import { createServer, limitConnections } from './http-server';
import { requestId } from './request-id';
import { listenForRequests } from './request-listener';
import { Rejections } from './rejections';

/** The fraction of the shutdown time for draining connections. The rest is for closing the store. */
const DRAIN_TIME_FRACTION = 0.8;

/**
 * Creates the Fastify adapter of the service. It validates the request headers before Fastify sees them,
 * errors raised below Nest have the Error body, and every accepted request gets its response before the
 * adapter closes. Use it with Nest's `bodyParser: false`.
 */
export function createFastifyAdapter(settings: Settings, responses: Responses): FastifyAdapter {
  const { corsOrigins, shutdownTimeout, shutdownGrace } = settings;
  const server = createServer(settings);
  limitConnections(server, settings.maxConnections);
  const rejections = new Rejections(corsOrigins, responses);
  const connections = new Connections(server, rejections);
  const adapter = new FastifyAdapter({
    genReqId: requestId,
    serverFactory: (handle: RequestListener) => {
      listenForRequests(server, connections, rejections, handle);
      return server;
    },
    // While closing, a request on an open connection is handled like any other.
    return503OnClosing: false,
    // No Express middleware is used here.
    skipMiddie: true,
    clientErrorHandler: (error, socket) => {
      connections.handleClientError(error, socket);
    },
  });

  const instance = adapter.getInstance<FastifyInstance>();
  // Without parsers, Fastify leaves the body of a POST unread, whatever its type: the pipe reads it after the guards.
  instance.addHttpMethod('POST', { hasBody: false, overrideExisting: true });
  addHooks(instance, corsOrigins);
  instance.addHook('preClose', () =>
    connections.drain((shutdownTimeout - shutdownGrace) * DRAIN_TIME_FRACTION),
  );
  return adapter;
}

function addHooks(instance: FastifyInstance, origins: readonly string[]): void {
  const originLog = new OriginLog(origins);
  instance.addHook('onRequest', (request, reply, done) => {
    void reply.header('X-Request-Id', request.id);
    if (origins.length > 0) void reply.headers(corsHeaders(request.raw, origins));
    if (request.routeOptions.url !== `/${PLANTS_PATH}`) void reply.headers(securityHeaders);
    const isCorsPreflight = isPreflight(request);
    if (isCorsPreflight) originLog.check(request);
    if (isCorsPreflight && origins.length > 0) {
      void reply.code(204).headers(PREFLIGHT_HEADERS).send();
    } else {
      done(request.is404 ? createNoRouteError(request, instance) : undefined);
    }
  });
  instance.addHook('onSend', ({ raw }, reply, _payload, done) => {
    // A client that got no 100 Continue may or may not send its body.
    if (raw.headers.expect !== undefined) void reply.header('Connection', 'close');
    done();
  });
}

/** Creates the error for a request without a route: an unknown path, or a method that the path does not support. */
function createNoRouteError({ url }: FastifyRequest, instance: FastifyInstance): PlantStoreError {
  // `/` only redirects browsers to the documentation. It is not a resource.
  if (pathOf(url) === '/') return new NotFoundError();
  // hasRoute() would interpret the client's path as a route pattern.
  const allowed = instance.supportedMethods.filter((method) => {
    const route = instance.findRoute({ method, url }) as { readonly params: object } | null;
    // A wildcard route does not mean that this path exists.
    return route !== null && !('*' in route.params);
  });
  if (allowed.length === 0) return new NotFoundError();
  const headers = { Allow: allowed.join(', ') };
  return new PlantStoreError('methodNotAllowed', undefined, { headers });
}
