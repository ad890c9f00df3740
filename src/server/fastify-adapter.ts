import type { RequestListener } from 'node:http';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type {
  FastifyError,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  onSendHookHandler,
} from 'fastify';
import { errorChannel, MalformedRequestError, PlantStoreError } from '../errors';
import { collectBytes, createPlantRoute, declareBytes } from '../plants';
import { BodyMemory } from './body-memory';
import { answerClientError, handleRequests } from './client-errors';
import { Connections } from './connections';
import { allowOrigins } from './cors';
import { createServer, type HttpOptions } from './http-server';
import { requestIds } from './request-id';
import { faultOfHead, faultOfTarget } from './request-rules';
import { securityHeaders } from './security-headers';

/** RFC 2046 section 4.5.1: the media type of arbitrary bytes. */
const ANY_BYTES = 'application/octet-stream';

/** In lower case, as Fastify keeps it: V8 would make and look up another text for each request. */
const REQUEST_ID = 'x-request-id';

/** The share of the shutdown time for connections; the rest is for closing the store. */
const DRAIN_SHARE = 0.8;

/**
 * Creates the Fastify adapter of the service. Bodies stay bytes, refusals below Nest carry the Error
 * body, and closing answers every accepted request. Use it with Nest's `bodyParser: false`.
 */
export function createFastifyAdapter(options: HttpOptions): FastifyAdapter {
  const server = createServer(options);
  const connections = new Connections(server);
  const adapter = new FastifyAdapter({
    genReqId: requestIds(),
    bodyLimit: options.bodyLimit,
    serverFactory: (handle: RequestListener) => {
      handleRequests(server, connections, handle);
      return server;
    },
    // While closing, a request on an open connection is answered like any other.
    return503OnClosing: false,
    // Refusals of the router, for example a path with a malformed escape.
    frameworkErrors: (_error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
      const fault = faultOfHead(request.raw);
      const error = fault ?? new MalformedRequestError('The request target is malformed.');
      if (fault) closeAfter(reply);
      reply.headers(securityHeaders).header(REQUEST_ID, request.id);
      answer(reply, error);
    },
    clientErrorHandler: (error, socket) => {
      answerClientError(error, socket, connections);
    },
  });

  const instance = adapter.getInstance<FastifyInstance>();
  keepBodiesUnparsed(instance, options.bodyLimit);
  declareBytes(adapter);
  const bodies = new BodyMemory(options.bodyLimit);
  if (options.corsOrigins.length > 0) allowOrigins(adapter, options.corsOrigins);
  spareSecurityHeaders(instance);
  // One hook for all rules, because each hook costs every request some 0.1 µs.
  instance.addHook('onRequest', (request, reply, done) => {
    const isUsual = isUsualCreation(request);
    if (!isUsual && request.routeOptions.url !== createPlantRoute.url) {
      void reply.headers(securityHeaders);
    }
    void reply.header(REQUEST_ID, request.id);
    hideMediaType(request);
    const fault = faultOfHead(request.raw);
    if (fault) closeAfter(reply);
    const error =
      fault ??
      (isUsual ? undefined : faultOfTarget(request, instance)) ??
      bodies.hold(request.raw, reply.raw);
    // The plugin's route of preflights has Fastify's error handler, not that of Nest.
    if (error && request.method === 'OPTIONS' && !request.is404) answer(reply, error);
    else done(error);
  });
  // For refusals before the body: Nest answers later ones itself.
  instance.addHook('onError', (request, _reply, _error, done) => {
    bodies.refuse(request.raw);
    done();
  });
  instance.addHook('preClose', () =>
    connections.drain((options.shutdownTimeout - options.shutdownGrace) * DRAIN_SHARE),
  );
  return adapter;
}

/**
 * Leaves the security header fields out of the answer to a successful creation. No browser could act on
 * them: such a request has an `Authorization` field, so it comes from a script and not from a page that
 * navigates, embeds or loads a script, and the answer to a `POST` is not cached. They cost 4% of the
 * processor time of a creation.
 */
function spareSecurityHeaders(instance: FastifyInstance): void {
  instance.addHook('onRoute', (options) => {
    if (options.url !== createPlantRoute.url) return;
    const addToErrors: onSendHookHandler = (_request, reply, payload, done) => {
      if (reply.statusCode !== 200) void reply.headers(securityHeaders);
      done(null, payload);
    };
    options.onSend = [options.onSend ?? [], addToErrors].flat();
  });
}

/**
 * Whether a request is a creation by its method and the very text of its target, as nearly all are. Its
 * target is in order, and Fastify need not make an object of the options of its route.
 */
function isUsualCreation({ raw }: FastifyRequest): boolean {
  return raw.url === createPlantRoute.url && raw.method === createPlantRoute.method;
}

/** Closes the connection after the response. */
function closeAfter({ raw }: FastifyReply): void {
  raw.shouldKeepAlive = false;
}

/** Answers an error that Nest's filter does not see. */
function answer(reply: FastifyReply, error: PlantStoreError): void {
  errorChannel.publish(error);
  void reply.status(error.getStatus()).headers(error.headers).send(error.body);
}

/** Keeps every body as bytes, whatever its media type, for the pipe to read after the guard. */
function keepBodiesUnparsed(instance: FastifyInstance, limit: number): void {
  instance.removeAllContentTypeParsers();
  // '*' is for a body without a media type. hideMediaType() sets the other, which is found at once.
  instance.addContentTypeParser(['*', ANY_BYTES], ({ headers }, payload, done) => {
    if (Number(headers['content-length'] ?? 0) > limit) done(new PlantStoreError('bodyTooLarge'));
    // Fastify would copy each body, and take its listeners away again: 4% of a creation.
    else collectBytes(payload, limit, done);
  });
}

/**
 * Replaces the media type that Fastify sees. Fastify would refuse a malformed one before the guard
 * runs; the pipe reads the original from the raw header fields.
 */
function hideMediaType({ headers }: FastifyRequest): void {
  if (headers['content-type'] !== undefined) headers['content-type'] = ANY_BYTES;
}
