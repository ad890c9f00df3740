import { randomUUID } from 'node:crypto';
import type {
  IncomingHttpHeaders,
  IncomingMessage,
  RequestListener,
  ServerResponse,
} from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import {
  BodyTooLargeError,
  MalformedRequestError,
  PlantStoreError,
} from '../../plants/errors/errors';
import { securityHeaders } from '../../plants/http/error.filter';
import { headerValues, notesOf } from '../../plants/http/request';
import { PLANTS_PATH } from '../../plants/plants.controller';
import type { Settings } from '../settings/environment';
import { removePorts } from '../monitoring/client-address';
import type { Recorder } from '../monitoring/recorder';
import { Connections } from './connections';
import { corsHeaders, isPreflight, preflightHeaders } from './cors';
import { HealthServer } from './health-server';
import { createServer } from './http-server';

/** The fraction of the shutdown time for draining connections. The rest is for closing the store. */
const DRAIN_TIME_FRACTION = 0.8;

/** How long connections stay open at shutdown, so that their next response can close them. */
const CLOSE_DELAY_MS = 500;

/**
 * Creates the Fastify adapter of the service. Errors raised below Nest have the Error body. Before it
 * closes, it waits for the responses of accepted requests, up to a limit. Use it with Nest's `bodyParser: false`.
 */
export function createFastifyAdapter(settings: Settings, recorder: Recorder): FastifyAdapter {
  const server = createServer(settings);
  server.maxConnections = settings.maxConnections;
  server.once('drop', () => {
    new Logger('PlantStore').warn(
      `Closed a new connection: the limit of ${settings.maxConnections} open connections is reached (MAX_CONNECTIONS). Further ones are only counted.`,
    );
  });
  const connections = new Connections(recorder);
  const adapter = new FastifyAdapter({
    genReqId: createRequestId,
    trustProxy: [...settings.trustedProxies],
    // Without a listener for `checkExpectation`, Node.js would respond to an unknown Expect without a body.
    serverFactory: (handle: RequestListener) => {
      const listener = connections.limit((request, response) => {
        const { 'x-forwarded-for': forwarded } = request.headers;
        // Fastify would not recognize a trusted proxy whose address has a port.
        if (forwarded) request.headers['x-forwarded-for'] = removePorts(String(forwarded));
        handle(request, response);
      });
      return server.on('request', listener).on('checkExpectation', listener);
    },
    // While closing, a request on an open connection is handled like any other.
    return503OnClosing: false,
    // No Express middleware is used here.
    skipMiddie: true,
    clientErrorHandler: (error, socket) => {
      connections.handleError(error, socket);
    },
    frameworkErrors: (_error: unknown, request: FastifyRequest, reply: FastifyReply) => {
      rejectUnrouted(request, reply, connections);
      // Fastify runs no hooks for such a request.
      request.receivedAt = performance.now();
      recorder.record(request, reply);
    },
  });
  const instance = adapter.getInstance<FastifyInstance>();
  // Without parsers, Fastify leaves the body of a POST unread, whatever its type: the pipe reads it after the guards.
  instance.addHttpMethod('POST', { hasBody: false, overrideExisting: true });
  instance.decorateRequest('receivedAt').decorate('healthServer', new HealthServer(server));
  addRequestHook(instance, settings.corsOrigins, connections);
  drainOnClose(instance, settings);
  instance.addHook('onSend', (request, reply, _payload, done) => {
    recorder.record(request, reply);
    done();
  });
  return adapter;
}

/** Returns the client's `X-Request-Id` if it cannot harm a terminal or a log, otherwise a new id. */
function createRequestId({ headers }: { readonly headers: IncomingHttpHeaders }): string {
  const id = String(headers['x-request-id'] ?? '');
  return /^[!-~]{1,128}$/.test(id) ? id : randomUUID();
}

/** Rejects a request whose path cannot be decoded. */
function rejectUnrouted(
  request: FastifyRequest,
  reply: FastifyReply,
  connections: Connections,
): void {
  const failure =
    findHeaderError(request.raw, reply.raw, connections) ??
    new MalformedRequestError('The request target is malformed.');
  notesOf(request).failure = failure;
  void reply.code(failure.getStatus()).headers({ ...securityHeaders, 'X-Request-Id': request.id });
  void reply.send(failure.body);
}

/** Returns the error of a request with malformed headers, if any. It is then the last of its connection. */
function findHeaderError(
  request: IncomingMessage,
  response: ServerResponse,
  connections: Connections,
): PlantStoreError | undefined {
  const error = validateHeaders(request);
  if (error) connections.endAfter(response);
  return error;
}

/**
 * Returns the error of a request that proxies and servers are known to read differently, RFC 9112 sections 3.2
 * and 6.1, or that has an unknown expectation, RFC 9110 section 10.1.1. Node.js rejects other malformed headers.
 */
function validateHeaders(request: IncomingMessage): PlantStoreError | undefined {
  const { headers, httpVersion } = request;
  const { length } = headerValues(request, 'host');
  if (length > 1 || (length === 0 && httpVersion !== '1.0')) {
    return new MalformedRequestError('The request must have exactly one Host header.');
  }
  const { expect, 'transfer-encoding': coding } = headers;
  if (coding !== undefined && (coding.toLowerCase() !== 'chunked' || httpVersion === '1.0')) {
    return new MalformedRequestError('The only Transfer-Encoding is chunked, in HTTP/1.1.');
  }
  const isMet = expect === undefined || /100-continue/i.test(expect);
  return isMet ? undefined : new PlantStoreError('expectationFailed');
}

/** Sets the headers of every response, and rejects requests with malformed headers or without a route. */
function addRequestHook(
  instance: FastifyInstance,
  origins: readonly string[],
  connections: Connections,
): void {
  instance.addHook('onRequest', (request, reply, done) => {
    request.receivedAt = performance.now();
    const { raw } = request;
    if (origins.length > 0) void reply.headers(corsHeaders(raw, origins));
    if (request.routeOptions.url !== `/${PLANTS_PATH}`) void reply.headers(securityHeaders);
    const error = findHeaderError(raw, reply.raw, connections);
    if (error) {
      done(error);
      return;
    }
    if (instance.healthServer.hides(raw)) {
      done(new PlantStoreError('notFound'));
      return;
    }
    const noRoute = request.is404 ? createNoRouteError(request, instance) : undefined;
    const methods = noRoute?.headers.Allow;
    if (methods !== undefined && isPreflight(request, origins)) {
      void reply.code(204).headers(preflightHeaders(request, methods)).send();
    } else {
      done(noRoute);
    }
  });
}

/** Creates the error for a request without a route: an unknown path, or a method that the path does not support. */
function createNoRouteError({ url }: FastifyRequest, instance: FastifyInstance): PlantStoreError {
  // hasRoute() would interpret the client's path as a route pattern.
  const allowed = instance.supportedMethods.filter((method) => {
    const route = instance.findRoute({ method, url }) as { readonly params: object } | null;
    // A wildcard route does not mean that this path exists.
    return route !== null && !('*' in route.params);
  });
  if (allowed.length === 0) return new PlantStoreError('notFound');
  const headers = { Allow: allowed.join(', ') };
  return new PlantStoreError('methodNotAllowed', undefined, { headers });
}

/**
 * Makes every response close its connection once the application closes, and gives connections that are in use
 * a moment to get such a response. Then Fastify stops listening, closes idle connections, and waits for the
 * requests in progress.
 */
function drainOnClose(
  instance: FastifyInstance,
  { shutdownTimeout, shutdownGrace }: Settings,
): void {
  const { server } = instance;
  const limitMs = (shutdownTimeout - shutdownGrace) * DRAIN_TIME_FRACTION;
  let isClosing = false;
  instance.addHook('onSend', (request, reply, _payload, done) => {
    void reply.header('X-Request-Id', request.id);
    // An oversized body may never end, RFC 9110 section 15.5.14.
    const isTooLarge = notesOf(request).failure instanceof BodyTooLargeError;
    if (isClosing || isTooLarge) void reply.header('Connection', 'close');
    done();
  });
  instance.addHook('preClose', async () => {
    isClosing = true;
    setTimeout(() => {
      server.closeAllConnections();
    }, limitMs).unref();
    if (server.listening) await sleep(Math.min(CLOSE_DELAY_MS, limitMs));
  });
}
