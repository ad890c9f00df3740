import type { RequestListener } from 'node:http';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { BodyTooLargeError, NotFoundError, PlantStoreError } from '../../plants/errors/errors';
import { readsOwnBody } from '../../plants/host/fastify';
import { securityHeaders } from '../../plants/http/error.filter';
import { type HostRequest, pathOf } from '../../plants/http/request';
import type { Responses } from '../watch/responses';
import { Connections } from './connections';
import { corsFields, isPreflight, OriginLog, PREFLIGHT_FIELDS } from './cors';
import type { Settings } from '../settings/environment';
import { createServer, limitConnections } from './http-server';
import { dropBody } from './linger';
import { requestId } from './request-id';
import { listenForRequests } from './request-listener';
import { Rejections } from './rejections';

type FailedRequest = FastifyRequest & Pick<HostRequest, 'failure'>;

/** The share of the shutdown time for connections; the rest is for closing the store. */
const DRAIN_SHARE = 0.8;

/**
 * Creates the Fastify adapter of the service. The rules of a request's head apply before Fastify sees
 * it, refusals below Nest carry the Error body, and closing answers every accepted request. Use it with
 * Nest's `bodyParser: false`.
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
    // While closing, a request on an open connection is answered like any other.
    return503OnClosing: false,
    // No middleware of Express runs here.
    skipMiddie: true,
    clientErrorHandler: (error, socket) => {
      connections.fail(error, socket);
    },
  });

  const instance = adapter.getInstance<FastifyInstance>();
  addHooks(instance, corsOrigins);
  instance.addHook('preClose', () =>
    connections.drain((shutdownTimeout - shutdownGrace) * DRAIN_SHARE),
  );
  return adapter;
}

function addHooks(instance: FastifyInstance, origins: readonly string[]): void {
  const originLog = new OriginLog(origins);
  instance.addHook('onRequest', (request, reply, done) => {
    void reply.header('X-Request-Id', request.id);
    if (origins.length > 0) void reply.headers(corsFields(request.raw, origins));
    if (!readsOwnBody(request.routeOptions.config)) void reply.headers(securityHeaders);
    const isCorsPreflight = isPreflight(request);
    if (isCorsPreflight) originLog.check(request);
    if (isCorsPreflight && origins.length > 0) {
      void reply.code(204).headers(PREFLIGHT_FIELDS).send();
    } else {
      done(request.is404 ? explainNoRoute(request, instance) : undefined);
    }
  });
  instance.addHook('onSend', (request: FailedRequest, reply, _payload, done) => {
    const { raw, failure } = request;
    // Nobody waits for the end of a body without one, RFC 9110 section 15.5.14. A client that was not
    // asked for its body may or may not send it.
    if (failure instanceof BodyTooLargeError || raw.headers.expect !== undefined) {
      void reply.header('Connection', 'close');
    }
    // Node.js closes the connection behind the answer. A client that still sends could not read it.
    const isSending = !raw.complete && !raw.destroyed;
    if (isSending && reply.getHeader('connection') === 'close') dropBody(raw, done);
    else done();
  });
}

/** Why no route answers a request: an unknown path, or a method that the path does not support. */
function explainNoRoute({ url }: FastifyRequest, instance: FastifyInstance): PlantStoreError {
  // There is nothing at the root, although it leads a browser to the documentation.
  if (pathOf(url) === '/') return new NotFoundError();
  // Not hasRoute(), which would read the client's path as a route pattern.
  const allowed = instance.supportedMethods.filter((method) => {
    const route = instance.findRoute({ method, url }) as { readonly params: object } | null;
    // A route for all paths of a folder does not say that there is something at this one.
    return route !== null && !('*' in route.params);
  });
  if (allowed.length === 0) return new NotFoundError();
  const headers = { Allow: allowed.join(', ') };
  return new PlantStoreError('methodNotAllowed', undefined, { headers });
}
