import type { Server as HttpsServer } from 'node:https';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { errorChannel, MalformedRequestError } from '../errors';
import { answerClientError, answerUnroutable } from './client-errors';
import { Connections } from './connections';
import { requestIds } from './request-id';
import { faultOfHead, faultOfTarget } from './request-rules';
import { securityHeaders } from './security-headers';
import { readTls, reloadTls, type TlsFiles } from './tls';

/** How the standalone service speaks HTTP. Durations are in milliseconds, sizes in bytes. */
export interface HttpOptions {
  /** HTTPS with these, or HTTP. */
  readonly tls: TlsFiles | undefined;
  readonly bodyLimit: number;
  /** Of the header section of a request, request line included. */
  readonly headersLimit: number;
  readonly maxConnections: number;
  readonly headersTimeout: number;
  readonly requestTimeout: number;
  readonly keepAliveTimeout: number;
  readonly shutdownGrace: number;
  readonly shutdownTimeout: number;
}

/** How often Node looks for connections that are past their time, in milliseconds. */
const TIMEOUT_CHECK_INTERVAL = 1000;

/** By how much the time-out of a silent connection exceeds that of a request, in milliseconds. */
const READER_ALLOWANCE = 2 * TIMEOUT_CHECK_INTERVAL;

/** RFC 2046 section 4.5.1: the media type that says nothing of the bytes. */
const ANY_BYTES = 'application/octet-stream';

/** The share of the shutdown time that connections get; the rest is for the store to close. */
const DRAIN_SHARE = 0.8;

/**
 * The Fastify adapter as the service wants it: bodies stay bytes, whatever HTTP refuses carries the
 * Error body, and closing answers what was accepted. To be used with Nest's `bodyParser: false`.
 */
export function createFastifyAdapter(options: HttpOptions): FastifyAdapter {
  const server = {
    maxHeaderSize: options.headersLimit,
    headersTimeout: options.headersTimeout,
    // Fastify sets it too, but after Node has compared the two.
    requestTimeout: options.requestTimeout,
    connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL,
    // Node answers a missing Host with an empty body; faultOfHead() does it with ours.
    requireHostHeader: false,
  };
  const tls = options.tls && readTls(options.tls);
  const adapter = new FastifyAdapter({
    genReqId: requestIds(),
    bodyLimit: options.bodyLimit,
    requestTimeout: options.requestTimeout,
    keepAliveTimeout: options.keepAliveTimeout,
    // When nothing moves, for Connections to judge. Whoever does not send is answered 408 before.
    connectionTimeout: options.requestTimeout + READER_ALLOWANCE,
    ...(tls
      ? { https: { ...server, ...tls.current, handshakeTimeout: options.headersTimeout } }
      : { http: server }),
    // While closing, what still arrives on an open connection is answered like anything else.
    return503OnClosing: false,
    // The router's refusals: a path with a malformed escape, and the like.
    frameworkErrors: (_error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
      const fault = faultOfHead(request.raw);
      const error = fault ?? new MalformedRequestError('The request target is malformed.');
      errorChannel.publish(error);
      if (fault) close(request, reply);
      void reply
        .status(error.getStatus())
        .headers(securityHeaders)
        .header('X-Request-Id', request.id)
        .send(error.body);
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
    connections.endWith(request.raw);
    reply.header('Connection', 'close');
  }
  answerUnroutable(instance.server, connections);
  keepBodiesUnparsed(instance);
  // One hook for all: each more costs every request some 0.1 µs.
  instance.addHook('onRequest', (request, reply, done) => {
    reply.headers(securityHeaders).header('X-Request-Id', request.id);
    hideMediaType(request);
    if (connections.comesTooLate(request.raw)) {
      reply.hijack();
      done();
      return;
    }
    const fault = faultOfHead(request.raw);
    if (fault) close(request, reply);
    done(fault ?? faultOfTarget(request, instance));
  });
  instance.addHook('preClose', () =>
    connections.drain((options.shutdownTimeout - options.shutdownGrace) * DRAIN_SHARE),
  );
  return adapter;
}

/** Has every body arrive as bytes, whatever its media type, for the pipe behind the guard to read. */
function keepBodiesUnparsed(instance: FastifyInstance): void {
  instance.removeAllContentTypeParsers();
  // The second is what hideMediaType() says, and found at once; the first is for a body without any.
  instance.addContentTypeParser(['*', ANY_BYTES], { parseAs: 'buffer' }, (_request, body, done) => {
    done(null, body);
  });
}

/**
 * Fastify itself refuses a malformed media type, before the guard has seen the caller. It gets one
 * that it accepts; the pipe reads what was sent.
 */
function hideMediaType({ headers }: FastifyRequest): void {
  if (headers['content-type'] !== undefined) headers['content-type'] = ANY_BYTES;
}
