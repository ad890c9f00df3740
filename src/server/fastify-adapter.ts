import type { RequestListener } from 'node:http';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { PlantStoreError } from '../plants';
import {
  errorChannel,
  type ErrorEvent,
  NotFoundError,
  pathOf,
  securityHeaders,
} from '../plants/program';
import { Connections } from './connections';
import { allowOrigins, isPreflight, logRefusedOrigins } from './cors';
import { isCreation } from './request-rules';
import type { Settings } from './environment';
import { createServer, limitConnections } from './http-server';
import { dropBody } from './linger';
import { requestId } from './request-context';
import { listenForRequests } from './request-listener';

/** The share of the shutdown time for connections; the rest is for closing the store. */
const DRAIN_SHARE = 0.8;

/**
 * Creates the Fastify adapter of the service. The rules of a request's head apply before Fastify sees
 * it, refusals below Nest carry the Error body, and closing answers every accepted
 * request. Use it with Nest's `bodyParser: false`.
 */
export function createFastifyAdapter(settings: Settings): FastifyAdapter {
  const { corsOrigins, shutdownTimeout, shutdownGrace } = settings;
  const server = createServer(settings);
  limitConnections(server, settings.maxConnections);
  const connections = new Connections(server);
  const adapter = new FastifyAdapter({
    genReqId: requestId,
    serverFactory: (handle: RequestListener) => {
      listenForRequests(server, connections, settings, handle);
      return server;
    },
    // While closing, a request on an open connection is answered like any other.
    return503OnClosing: false,
    // No middleware of Express runs here.
    skipMiddie: true,
    clientErrorHandler: (error, socket) => {
      connections.fail(error, socket);
    },
  });

  const instance = adapter.getInstance<FastifyInstance>();
  if (corsOrigins.length > 0) allowOrigins(adapter, corsOrigins);
  logRefusedOrigins(instance, corsOrigins);
  addHooks(instance);
  instance.addHook('preClose', () =>
    connections.drain((shutdownTimeout - shutdownGrace) * DRAIN_SHARE),
  );
  return adapter;
}

function addHooks(instance: FastifyInstance): void {
  instance.addHook('onRequest', (request, reply, done) => {
    void reply.header('X-Request-Id', request.id);
    if (!isCreation(request.raw)) void reply.headers(securityHeaders);
    // Until the client is asked for the body, see askForBodies().
    if (request.headers.expect !== undefined) void reply.header('Connection', 'close');
    const error = findRouteFault(request, instance);
    // The plugin's route of preflights has Fastify's error handler, not that of Nest.
    if (error && request.method === 'OPTIONS' && !request.is404) sendError(reply, error);
    else done(error);
  });
  instance.addHook('onSend', ({ raw }, reply, _payload, done) => {
    // Node.js closes the connection behind the answer. A client that still sends could not read it.
    const isSending = !raw.complete && !raw.destroyed;
    if (isSending && reply.getHeader('connection') === 'close') dropBody(raw, done);
    else done();
  });
}

/** Why no route answers a request: an unknown path, or a method that the path does not support. */
function findRouteFault(
  request: FastifyRequest,
  instance: FastifyInstance,
): PlantStoreError | undefined {
  // With CORS, every OPTIONS has a route.
  if (!request.is404 && (request.method !== 'OPTIONS' || isPreflight(request))) return undefined;
  const { url } = request;
  // There is nothing at the root, although it leads a browser to the documentation.
  if (pathOf(url) === '/') return new NotFoundError();
  // Not hasRoute(), which would read the client's path as a route pattern.
  const allowed = instance.supportedMethods.filter(
    // Every path has the route of preflights, and no other answers OPTIONS.
    (method) => method !== 'OPTIONS' && Boolean(instance.findRoute({ method, url })),
  );
  if (allowed.length === 0) return new NotFoundError();
  const headers = { Allow: allowed.join(', ') };
  return new PlantStoreError('methodNotAllowed', undefined, { headers });
}

/** Answers an error that Nest's filter does not see. */
function sendError(reply: FastifyReply, error: PlantStoreError): void {
  errorChannel.publish({ error, request: reply.request.raw } satisfies ErrorEvent);
  void reply
    .status(error.getStatus())
    .headers({ ...securityHeaders, ...error.headers })
    .send(error.body);
}
