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

/** How long an idle connection stays open while draining, in milliseconds. */
const IDLE = 500;

/** RFC 9112 section 3: a request line that is valid apart from its method. */
const UNKNOWN_METHOD = /^[!#$%&'*+.^_`|~0-9A-Za-z-]* [^ \r\n]+ HTTP\/1\.[01]\r?\n/;

/** What Node.js hands to a listener of `clientError`. */
interface ClientError extends Error {
  readonly code?: string;
  /** The bytes that the parser could not parse, a Buffer. Fastify declares another type. */
  readonly rawPacket?: unknown;
  /** How many of these bytes it had parsed. */
  readonly bytesParsed?: number;
}

/**
 * The open connections of a server. Each has one request in progress, and later requests wait. So a
 * request behind an answer that closes the connection is never processed, RFC 9112 section 9.6: the
 * socket has ended before the request is begun.
 */
export class Connections {
  /** All sockets. With TLS also the raw ones, known before the handshake ends. */
  private readonly sockets = new Set<Socket>();
  /** The response to the latest request, until that is received and answered. */
  private readonly latest = new WeakMap<Socket, ServerResponse>();
  /** The responses that are closed although their request is not received completely. */
  private readonly closed = new WeakSet<ServerResponse>();
  /** The responses whose request is not begun. */
  private readonly waiting = new WeakSet<ServerResponse>();
  /** Why the bytes of a connection cannot be parsed any further. */
  private readonly faults = new WeakMap<Socket, PlantStoreError>();
  private draining = false;

  constructor(
    private readonly server: Server,
    private readonly rejections: Rejections,
  ) {
    for (const event of ['connection', 'secureConnection']) {
      server.on(event, (socket: Socket) => {
        this.sockets.add(socket);
        socket.once('close', () => this.sockets.delete(socket));
      });
    }
    server.on('timeout', (socket: Socket) => {
      // Idle, or its client does not read. A request that waits for the store is left alone.
      const isWaiting = this.latest.get(socket)?.writableFinished === false;
      if (!isWaiting || socket.writableLength > 0) socket.destroy();
    });
  }

  /**
   * Begins a request at once, or when the one before it is answered; never when the connection has
   * ended. The answer says if it closes the connection.
   */
  take(request: IncomingMessage, response: ServerResponse, proceed: () => void): void {
    const { socket } = request;
    const before = this.latest.get(socket);
    this.latest.set(socket, response);
    response.on('close', () => {
      // Idle connections hold no response: with thousands of them, that is memory.
      if (!request.complete) this.closed.add(response);
      else if (this.latest.get(socket) === response) this.latest.delete(socket);
    });
    // Not once it is finished: Node.js ends the socket of an answer that closes the connection later.
    if (!socket.writable || before === undefined || this.closed.has(before)) {
      this.begin(request, response, proceed);
      return;
    }
    // Nothing more is read meanwhile, so that a client cannot pile up requests. Node.js reads on at the
    // end of each message, so not before what was received is parsed.
    this.waiting.add(response);
    process.nextTick(() => {
      if (this.waiting.has(response)) socket.pause();
    });
    before.once('close', () => {
      this.waiting.delete(response);
      if (this.latest.get(socket) === response) socket.resume();
      this.begin(request, response, proceed);
    });
  }

  /**
   * Answers what the HTTP parser refuses, and what does not come in time, once the requests before it
   * are answered. Fastify's option `clientErrorHandler`.
   */
  fail(error: ClientError, socket: Socket): void {
    const { code = '' } = error;
    if (!code.startsWith('HPE_') && code !== 'ERR_HTTP_REQUEST_TIMEOUT') {
      // Reset by the client, or no TLS.
      socket.destroy();
      return;
    }
    // Node.js repeats the error with each segment behind it.
    if (!socket.writable || this.faults.has(socket)) return;
    this.faults.set(socket, explainParserError(error));
    const latest = this.latest.get(socket);
    if (latest === undefined || this.closed.has(latest)) this.endFaulty(socket);
    else if (latest.req.complete || latest.headersSent) {
      latest.once('close', () => {
        this.endFaulty(socket);
      });
    }
    // The fault is in the body of a request. If that waits, begin() will see the fault.
    else if (!this.waiting.has(latest)) this.endFaulty(socket);
  }

  /**
   * Accepts no more connections, lets each answer close its connection from now on, and closes idle
   * connections after a moment, so that a request on its way is answered.
   *
   * @param limit milliseconds after which all connections are destroyed
   */
  async drain(limit: number): Promise<void> {
    this.draining = true;
    // Not the method of HTTP servers, which closes idle connections at once. New connections wait in an
    // inherited socket for the next service; of those accepted now, some would be cut in the end.
    NetServer.prototype.close.call(this.server);
    for (const socket of this.sockets) {
      const response = this.latest.get(socket);
      if (response?.headersSent === false) response.setHeader('Connection', 'close');
    }
    setTimeout(() => {
      for (const socket of this.sockets) socket.destroy();
    }, limit).unref();
    if (this.sockets.size > 0) await sleep(Math.min(IDLE, limit));
    // Closing the server closes idle connections, but not one that never sent a byte.
    for (const socket of this.sockets) if (socket.bytesRead === 0) socket.destroy();
  }

  private begin(request: IncomingMessage, response: ServerResponse, proceed: () => void): void {
    const { socket } = request;
    if (!socket.writable) request.resume();
    else if (!request.complete && this.faults.has(socket)) this.endFaulty(socket);
    else {
      if (this.draining || closesConnection(request)) response.setHeader('Connection', 'close');
      proceed();
    }
  }

  private endFaulty(socket: Socket): void {
    const fault = this.faults.get(socket);
    if (fault === undefined || !socket.writable) return;
    const latest = this.latest.get(socket);
    // A request whose body is at fault may have been answered before.
    const isAnswered = latest?.req.complete === false && latest.headersSent;
    if (!isAnswered) this.rejections.rejectBytes(socket, fault);
    endAndLinger(socket);
  }
}

function explainParserError({ code, rawPacket, bytesParsed }: ClientError): PlantStoreError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new PlantStoreError('requestTimeout');
  if (code === 'HPE_HEADER_OVERFLOW') return new PlantStoreError('headersTooLarge');
  const isMethod = code === 'HPE_INVALID_METHOD' && Buffer.isBuffer(rawPacket);
  return isMethod && UNKNOWN_METHOD.test(rawPacket.toString('latin1', bytesParsed))
    ? new NotImplementedError()
    : new MalformedRequestError();
}
