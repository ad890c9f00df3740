import type { Server as HttpsServer } from 'node:https';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { errorChannel, MalformedRequestError, type PlantStoreError } from '../errors';
import { answerClientError, answerUnroutable } from './client-errors';
import { Connections } from './connections';
import { allowOrigins } from './cors';
import { requestIds } from './request-id';
import { faultOfHead, faultOfTarget } from './request-rules';
import { securityHeaders } from './security-headers';
import { readTls, reloadTls, type TlsFiles } from './tls';

/** The HTTP settings of the standalone service. Durations are in milliseconds, sizes in bytes. */
export interface HttpOptions {
  /** The files for HTTPS; undefined for HTTP. */
  readonly tls: TlsFiles | undefined;
  readonly bodyLimit: number;
  /** Of the header section of a request, request line included. */
  readonly headersLimit: number;
  readonly maxConnections: number;
  /** The origins whose pages may use the service; none for no CORS. */
  readonly corsOrigins: readonly string[];
  readonly headersTimeout: number;
  readonly requestTimeout: number;
  readonly keepAliveTimeout: number;
  readonly shutdownGrace: number;
  readonly shutdownTimeout: number;
}

/** How often Node looks for requests that have timed out, in milliseconds. */
const TIMEOUT_CHECK_INTERVAL = 1000;

/** How much longer a stalled connection lives than the request time-out, in milliseconds. */
const READER_ALLOWANCE = 2 * TIMEOUT_CHECK_INTERVAL;

/** RFC 2046 section 4.5.1: the media type of arbitrary bytes. */
const ANY_BYTES = 'application/octet-stream';

/** The share of the shutdown time for connections; the rest is for closing the store. */
const DRAIN_SHARE = 0.8;

/**
 * Creates the Fastify adapter of the service. Bodies stay bytes, refusals below Nest carry the Error
 * body, and closing answers every accepted request. Use it with Nest's `bodyParser: false`.
 */
export function createFastifyAdapter(options: HttpOptions): FastifyAdapter {
  const server = {
    maxHeaderSize: options.headersLimit,
    headersTimeout: options.headersTimeout,
    // Fastify sets it too, but only after Node has compared it with headersTimeout.
    requestTimeout: options.requestTimeout,
    connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL,
    // Node answers a missing Host with an empty body; faultOfHead() answers with the Error body.
    requireHostHeader: false,
  };
  const tls = options.tls && readTls(options.tls);
  const adapter = new FastifyAdapter({
    genReqId: requestIds(),
    bodyLimit: options.bodyLimit,
    requestTimeout: options.requestTimeout,
    keepAliveTimeout: options.keepAliveTimeout,
    // Connections decides about a stalled connection. A client that does not send gets 408 before.
    connectionTimeout: options.requestTimeout + READER_ALLOWANCE,
    ...(tls
      ? { https: { ...server, ...tls.current, handshakeTimeout: options.headersTimeout } }
      : { http: server }),
    // While closing, a request on an open connection is answered like any other.
    return503OnClosing: false,
    // Refusals of the router, for example a path with a malformed escape.
    frameworkErrors: (_error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
      const fault = faultOfHead(request.raw);
      const error = fault ?? new MalformedRequestError('The request target is malformed.');
      if (fault) close(request, reply);
      reply.headers(securityHeaders).header('X-Request-Id', request.id);
      answer(reply, error);
    },
    clientErrorHandler: (error, socket) => {
      void answerClientError(error, socket, connections);
    },
  });

  const instance = adapter.getInstance<FastifyInstance>();
  if (tls) reloadTls(instance.server as HttpsServer, tls);
  instance.server.maxConnections = options.maxConnections;
  const connections = new Connections(instance.server);
  function close(request: FastifyRequest, reply: FastifyReply): void {
    connections.closeAfter(request.raw);
    reply.header('Connection', 'close');
  }
  answerUnroutable(instance.server, connections);
  keepBodiesUnparsed(instance);
  if (options.corsOrigins.length > 0) allowOrigins(adapter, options.corsOrigins);
  // One hook for all rules, because each hook costs every request some 0.1 µs.
  instance.addHook('onRequest', (request, reply, done) => {
    reply.headers(securityHeaders).header('X-Request-Id', request.id);
    hideMediaType(request);
    if (connections.followsClosingRequest(request.raw)) {
      reply.hijack();
      done();
      return;
    }
    const fault = faultOfHead(request.raw);
    if (fault) close(request, reply);
    const error = fault ?? faultOfTarget(request, instance);
    // The plugin's route of preflights has Fastify's error handler, not that of Nest.
    if (error && request.method === 'OPTIONS' && !request.is404) answer(reply, error);
    else done(error);
  });
  instance.addHook('preClose', () =>
    connections.drain((options.shutdownTimeout - options.shutdownGrace) * DRAIN_SHARE),
  );
  return adapter;
}

/** Answers an error that Nest's filter does not see. */
function answer(reply: FastifyReply, error: PlantStoreError): void {
  errorChannel.publish(error);
  void reply.status(error.getStatus()).headers(error.headers).send(error.body);
}

/** Keeps every body as bytes, whatever its media type, for the pipe to read after the guard. */
function keepBodiesUnparsed(instance: FastifyInstance): void {
  instance.removeAllContentTypeParsers();
  // '*' is for a body without a media type. hideMediaType() sets the other, which is found at once.
  instance.addContentTypeParser(['*', ANY_BYTES], { parseAs: 'buffer' }, (_request, body, done) => {
    done(null, body);
  });
}

/**
 * Replaces the media type that Fastify sees. Fastify would refuse a malformed one before the guard
 * runs; the pipe reads the original from the raw header fields.
 */
function hideMediaType({ headers }: FastifyRequest): void {
  if (headers['content-type'] !== undefined) headers['content-type'] = ANY_BYTES;
}
