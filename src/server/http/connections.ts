/*
 * Depends on undocumented behavior of Node.js (tested: 26.10.0): `parser.onIncoming` of a connection
 * creates the response to each request of a segment, which stays in memory until the connection has closed, in
 * the next turn of the event loop. Without it, a few hundred connections fill the memory.
 */
import { randomUUID } from 'node:crypto';
import {
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { Socket } from 'node:net';
import { MalformedRequestError, PlantStoreError } from '../../plants/errors/errors';
import type { Recorder } from '../monitoring/recorder';
import { securityHeaders } from '../../plants/http/security-headers';
import { validateHeaders } from './header-validation';

/** How long a rejected client may take to read the response. */
const LINGER_MS = 2000;

/** The maximum number of requests in progress on a connection. Node.js handles a whole segment before it pauses. */
const MAX_REQUESTS_PER_CONNECTION = 64;

/** Beyond this number of requests in progress on all connections, each of them may have only one. */
const MAX_PIPELINED_REQUESTS = 1024;

interface Connection {
  /** The responses that are not sent yet, in the order of their requests. */
  readonly pending: Set<ServerResponse>;
  /** The response to the last request. */
  last: ServerResponse | undefined;
  /** Whether nothing after the last request is processed. */
  isEnding: boolean;
}

/**
 * Limits the requests in progress on each connection, and ends connections whose next bytes cannot be trusted. It
 * responds to bytes that Node's HTTP parser rejects and to requests that time out.
 */
export class Connections {
  private readonly connections = new WeakMap<Socket, Connection>();
  /** The number of requests in progress on all connections. */
  private total = 0;

  constructor(private readonly recorder: Recorder) {}

  /** Wraps the listener for requests of a server. Requests of a connection that ends do not reach it. */
  limit(listener: RequestListener): RequestListener {
    return (request, response) => {
      const { socket } = request;
      if (socket.destroyed) return;
      const connection = this.connections.get(socket) ?? this.add(socket);
      const { pending, isEnding } = connection;
      connection.last = response;
      pending.add(response);
      this.total++;
      const limit = this.total > MAX_PIPELINED_REQUESTS ? 1 : MAX_REQUESTS_PER_CONNECTION;
      if (pending.size > limit) destroyAtOnce(socket);
      else if (!isEnding) {
        response.once('close', () => {
          if (pending.delete(response)) this.total--;
          // Keeping the last response of each connection would take a tenth of the CPU time.
          if (request.complete && connection.last === response) connection.last = undefined;
        });
        // Node.js drops the rest of the segment, so the next one may begin in the middle of a body.
        if (request.headers.upgrade !== undefined) this.endAfter(response);
        // The router finds the route of `/plants` for `*plants`, and then runs no hook.
        if (request.url?.startsWith('*')) request.url = `/${request.url}`;
        listener(request, response);
      }
    };
  }

  private add(socket: Socket): Connection {
    const connection: Connection = { pending: new Set(), last: undefined, isEnding: false };
    this.connections.set(socket, connection);
    socket.once('close', () => {
      // Node.js closes only one of the responses.
      this.total -= connection.pending.size;
      connection.pending.clear();
    });
    return connection;
  }

  /** Ends a connection after a response, and processes nothing after its request. */
  private endAfter(response: ServerResponse): void {
    response.setHeader('Connection', 'close');
    const connection = this.connections.get(response.req.socket);
    if (connection) connection.isEnding = true;
  }

  /** Returns the error of a request with malformed headers, which is then the last of its connection. */
  validate(request: IncomingMessage, response: ServerResponse): PlantStoreError | undefined {
    const error = validateHeaders(request);
    if (error) this.endAfter(response);
    return error;
  }

  /** Handles the event `clientError` of a server. */
  handleError({ code = '' }: NodeJS.ErrnoException, socket: Socket): void {
    if (!code.startsWith('HPE_') && code !== 'ERR_HTTP_REQUEST_TIMEOUT') {
      // The client reset the connection, or the bytes are not TLS.
      socket.destroy();
      return;
    }
    const connection = this.connections.get(socket);
    const responses = [...(connection?.pending ?? [])];
    // The response to the request that the bytes belong to, if its headers have been read.
    const current = connection?.last?.req.complete === false ? connection.last : undefined;
    const previous = responses.findLast((response) => response !== current);
    const areComplete = responses.every((each) => each === current || each.writableEnded);
    const end = (): void => {
      // Node.js emits the event again for every later segment.
      if (!socket.writable) return;
      setTimeout(() => socket.destroy(), LINGER_MS).unref();
      // A client would take the error for the response to its next request, or to one that may store a plant.
      if (current?.headersSent || !areComplete) {
        socket.end();
        return;
      }
      const error = createClientError(code);
      socket.end(formatResponse(error));
      this.recorder.recordOnSocket(error, current);
    };
    if (!connection || !previous) end();
    else if (!previous.headersSent) this.endAfter(previous);
    else if (!connection.isEnding) {
      connection.isEnding = true;
      previous.once('close', end);
    }
  }
}

/** Destroys a connection. The parser creates nothing for the remaining requests of the segment. */
function destroyAtOnce(socket: Socket & { parser?: object }): void {
  socket.destroy();
  if (socket.parser) Object.assign(socket.parser, { onIncoming: () => 0 });
}

function createClientError(code: string): PlantStoreError {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new PlantStoreError('requestTimeout');
  if (code === 'HPE_HEADER_OVERFLOW') return new PlantStoreError('headersTooLarge');
  return new MalformedRequestError();
}

function formatResponse(error: PlantStoreError): string {
  const body = JSON.stringify(error.body);
  const status = error.getStatus();
  const headers = {
    // RFC 9110 section 6.6.1
    Date: new Date().toUTCString(),
    'X-Request-Id': randomUUID(),
    ...securityHeaders,
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    Connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`;
}
