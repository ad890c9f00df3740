import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  MalformedRequestError,
  NotImplementedError,
  PlantStoreError,
} from '../../plants/errors/errors';
import { endAndLinger } from './linger';
import type { Rejections } from './rejections';
import { closesConnection } from './request-rules';

/** How long an idle connection stays open while draining. */
const IDLE_CLOSE_DELAY_MS = 500;

/** RFC 9112 section 3: a request line that is valid apart from its method. */
const UNKNOWN_METHOD = /^[!#$%&'*+.^_`|~0-9A-Za-z-]* [^ \r\n]+ HTTP\/1\.[01]\r?\n/;

/** The error that Node.js passes to a listener of `clientError`. */
interface ClientError extends Error {
  readonly code?: string;
  /** The bytes that the parser was given: a Buffer, although Fastify declares another type. */
  readonly rawPacket?: unknown;
  /** How many of these bytes it parsed before the error. */
  readonly bytesParsed?: number;
}

/**
 * The open connections of a server. Each connection has one request in progress, and later requests wait. So a
 * request that follows a response with `Connection: close` is never processed, RFC 9112 section 9.6: the
 * socket has ended before the request would start.
 *
 * This file depends on undocumented behavior of Node.js: when it reports a parser error again, when it resumes
 * reading, and when and by which method it ends the socket of a response. Tested with Node.js 26.10. `segmentations.e2e-spec.ts` fails
 * if this behavior changes.
 */
export class Connections {
  /** All open sockets. With TLS, these include the raw sockets, which exist before the handshake ends. */
  private readonly sockets = new Set<Socket>();
  /** The response to the latest request, until the request is received and its response has closed. */
  private readonly latestResponse = new WeakMap<Socket, ServerResponse>();
  /** The responses that closed before their request was received completely. */
  private readonly closedEarly = new WeakSet<ServerResponse>();
  /** The responses whose request has not started. */
  private readonly waiting = new WeakSet<ServerResponse>();
  /** The error of a connection whose bytes cannot be parsed any further. */
  private readonly parseErrors = new WeakMap<Socket, PlantStoreError>();
  private isDraining = false;

  constructor(
    private readonly server: Server,
    private readonly rejections: Rejections,
  ) {
    for (const event of ['connection', 'secureConnection']) {
      server.on(event, (socket: Socket) => {
        this.sockets.add(socket);
        socket.once('close', () => this.sockets.delete(socket));
        // Node.js calls it after a response that closes the connection.
        socket.destroySoon = () => {
          this.end(socket);
        };
      });
    }
    server.on('timeout', (socket: Socket) => {
      // The connection is idle, or its client does not read. Do not close it while a request waits for the store.
      const isWaiting = this.latestResponse.get(socket)?.writableFinished === false;
      if (!isWaiting || socket.writableLength > 0) socket.destroy();
    });
  }

  /**
   * Starts a request immediately, or after the previous response on its connection. Never starts it after the
   * connection has ended. Adds `Connection: close` to the response if it must close the connection.
   */
  handleInOrder(request: IncomingMessage, response: ServerResponse, proceed: () => void): void {
    const { socket } = request;
    const previous = this.latestResponse.get(socket);
    this.latestResponse.set(socket, response);
    response.on('close', () => {
      // Frees the responses of idle connections, because there may be thousands of them.
      if (!request.complete) this.closedEarly.add(response);
      else if (this.latestResponse.get(socket) === response) this.latestResponse.delete(socket);
    });
    // The previous response counts until `close`, not `finish`, because Node.js ends its socket after `finish`.
    if (!socket.writable || previous === undefined || this.closedEarly.has(previous)) {
      this.start(request, response, proceed);
      return;
    }
    // Stops reading, so that a client cannot pile up requests. Pauses on the next tick, because Node.js resumes
    // reading at the end of each message that it has received.
    this.waiting.add(response);
    process.nextTick(() => {
      if (this.waiting.has(response)) socket.pause();
    });
    previous.once('close', () => {
      this.waiting.delete(response);
      if (this.latestResponse.get(socket) === response) socket.resume();
      this.start(request, response, proceed);
    });
  }

  /**
   * Responds to bytes that the HTTP parser rejects and to requests that time out, after the earlier responses
   * on the connection. Handles `clientError` of Node.js.
   */
  handleClientError(error: ClientError, socket: Socket): void {
    const { code = '' } = error;
    if (!code.startsWith('HPE_') && code !== 'ERR_HTTP_REQUEST_TIMEOUT') {
      // The client reset the connection, or the bytes are not TLS.
      socket.destroy();
      return;
    }
    // Node.js emits the error again for every later segment.
    if (!socket.writable || this.parseErrors.has(socket)) return;
    this.parseErrors.set(socket, createParseError(error));
    const latest = this.latestResponse.get(socket);
    if (latest === undefined || this.closedEarly.has(latest)) this.closeWithError(socket);
    else if (latest.req.complete || latest.headersSent) {
      latest.once('close', () => {
        this.closeWithError(socket);
      });
    }
    // The invalid bytes are in the body of a request. If that request waits, start() will see the error.
    else if (!this.waiting.has(latest)) this.closeWithError(socket);
  }

  /**
   * Accepts no more connections. From now on, every response closes its connection, and idle connections are
   * closed after a short delay, so that a request on its way gets its response.
   *
   * @param limitMs the time after which all connections are destroyed
   */
  async drain(limitMs: number): Promise<void> {
    this.isDraining = true;
    // Does not use the method of HTTP servers, which closes idle connections immediately. New connections wait in
    // an inherited socket for the next service. If they were accepted now, some would be closed unfinished.
    NetServer.prototype.close.call(this.server);
    for (const socket of this.sockets) {
      const response = this.latestResponse.get(socket);
      if (response?.headersSent === false) response.setHeader('Connection', 'close');
    }
    setTimeout(() => {
      for (const socket of this.sockets) socket.destroy();
    }, limitMs).unref();
    if (this.sockets.size > 0) await sleep(Math.min(IDLE_CLOSE_DELAY_MS, limitMs));
    // Fastify closes the server next, which closes idle connections except those that never sent a byte.
    for (const socket of this.sockets) if (socket.bytesRead === 0) socket.destroy();
  }

  private start(request: IncomingMessage, response: ServerResponse, proceed: () => void): void {
    const { socket } = request;
    if (!socket.writable) request.resume();
    else if (!request.complete && this.parseErrors.has(socket)) this.closeWithError(socket);
    else {
      if (this.isDraining || closesConnection(request)) response.setHeader('Connection', 'close');
      proceed();
    }
  }

  private closeWithError(socket: Socket): void {
    const error = this.parseErrors.get(socket);
    if (error === undefined || !socket.writable) return;
    const latest = this.latestResponse.get(socket);
    // The request with the invalid body may already have got its response.
    const hasResponse = latest?.req.complete === false && latest.headersSent;
    if (!hasResponse) this.rejections.rejectBytes(socket, error);
    this.end(socket);
  }

  /** Ends a connection so that a client that is still sending can read the response. */
  private end(socket: Socket): void {
    const request = this.latestResponse.get(socket)?.req;
    endAndLinger(socket, Number(request?.headers['content-length'] ?? 0));
  }
}

function createParseError({ code, rawPacket, bytesParsed }: ClientError): PlantStoreError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new PlantStoreError('requestTimeout');
  if (code === 'HPE_HEADER_OVERFLOW') return new PlantStoreError('headersTooLarge');
  const hasInvalidMethod = code === 'HPE_INVALID_METHOD' && Buffer.isBuffer(rawPacket);
  return hasInvalidMethod && UNKNOWN_METHOD.test(rawPacket.toString('latin1', bytesParsed))
    ? new NotImplementedError()
    : new MalformedRequestError();
}
