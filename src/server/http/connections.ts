/*
 * Depends on undocumented behavior of Node.js (tested: 26.10.0): `parser.onIncoming` creates the response to each
 * request of a segment, which stays in memory until the next turn of the event loop.
 */
import { randomUUID } from 'node:crypto';
import {
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { Socket } from 'node:net';
import { type ErrorKind, MalformedRequestError, PlantStoreError } from '../../plants/errors/errors';
import type { Recorder } from '../monitoring/recorder';
import { securityHeaders } from '../../plants/http/security-headers';

/** How long a rejected client may take to read the response. */
const LINGER_MS = 2000;

/** The maximum number of requests in progress on a connection. Node.js handles a whole segment before it pauses. */
const MAX_REQUESTS_PER_CONNECTION = 64;

/** Beyond this number of requests in progress on all connections, each of them may have only one. */
const MAX_REQUESTS_IN_PROGRESS = 1024;

/** The errors for codes of `clientError`. Other codes of the HTTP parser mean a malformed request. */
const CLIENT_ERRORS: Readonly<Record<string, ErrorKind>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'requestTimeout',
  HPE_HEADER_OVERFLOW: 'headersTooLarge',
};

interface Connection {
  /** The responses that are not sent yet, in the order of their requests. */
  readonly pending: ServerResponse[];
  /** The response to the last request, until both are complete. */
  last: ServerResponse | undefined;
  /** Whether nothing after the last request is processed. */
  isEnding: boolean;
  /** Counts a response as sent. One function per connection: one per request would cost CPU time. */
  readonly release: () => void;
}

/** Limits the requests in progress on each connection, and responds to what Node's HTTP parser rejects. */
export class Connections {
  private readonly connections = new WeakMap<Socket, Connection>();
  private total = 0;

  constructor(private readonly recorder: Recorder) {}

  /** Wraps the listener for requests of a server. Requests of a connection that ends do not reach it. */
  limit(listener: RequestListener): RequestListener {
    return (request, response) => {
      const { socket } = request;
      if (socket.destroyed) return;
      const connection = this.connections.get(socket) ?? this.add(socket);
      connection.last = response;
      connection.pending.push(response);
      this.total++;
      const limit = this.total > MAX_REQUESTS_IN_PROGRESS ? 1 : MAX_REQUESTS_PER_CONNECTION;
      if (connection.pending.length > limit) destroyAtOnce(socket);
      else if (!connection.isEnding) {
        response.on('close', connection.release);
        // Node.js drops the rest of the segment, so the next one may begin in the middle of a body.
        if (request.headers.upgrade !== undefined) this.endAfter(response);
        listener(request, response);
      }
    };
  }

  private add(socket: Socket): Connection {
    const release = (): void => {
      if (!pending.shift()) return;
      this.total--;
      // Keeping the last response of each connection would take a tenth of the CPU time.
      if (pending.length === 0 && connection.last?.req.complete) connection.last = undefined;
    };
    const pending: ServerResponse[] = [];
    const connection: Connection = { pending, last: undefined, isEnding: false, release };
    this.connections.set(socket, connection);
    socket.once('close', () => {
      // Node.js closes only one of the responses.
      this.total -= pending.length;
      pending.length = 0;
    });
    return connection;
  }

  /** Ends a connection after a response, and processes nothing after its request. */
  private endAfter(response: ServerResponse): void {
    const { socket } = response.req;
    if (response.headersSent) response.once('close', () => socket.end());
    else response.setHeader('Connection', 'close');
    const connection = this.connections.get(socket);
    if (connection) connection.isEnding = true;
  }

  /** Returns the error of a request with malformed headers, which is then the last of its connection. */
  validate(response: ServerResponse): PlantStoreError | undefined {
    const error = findHeaderError(response.req);
    if (error) this.endAfter(response);
    return error;
  }

  /** Handles the event `clientError` of a server. */
  handleError(error: NodeJS.ErrnoException, socket: Socket): void {
    const { code = '' } = error;
    if (!code.startsWith('HPE_') && !(code in CLIENT_ERRORS)) {
      // The client reset the connection, or the bytes are not TLS.
      socket.destroy();
      return;
    }
    // Node.js emits the event again for every later segment.
    if (!socket.writable) return;
    const { pending = [], last, isEnding } = this.connections.get(socket) ?? {};
    // The response to the request that the bytes belong to, if its headers have been read.
    const current = last?.req.complete === false ? last : undefined;
    const previous = pending.findLast((response) => response !== current);
    if (previous) {
      if (isEnding) return;
      // A client would take the error for a response that is in progress, which may be that of a plant.
      if (pending.every((response) => response === current || response.writableEnded)) {
        previous.once('close', () => {
          this.handleError(error, socket);
        });
      }
      this.endAfter(previous);
      return;
    }
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
    if (current?.headersSent) {
      socket.end();
      return;
    }
    const failure = new PlantStoreError(CLIENT_ERRORS[code] ?? 'malformedRequest');
    const requestId = randomUUID();
    socket.end(formatResponse(failure, requestId));
    this.recorder.recordOnSocket(failure, requestId, socket, current);
  }
}

/**
 * Returns the error of a request that proxies and servers are known to read differently, RFC 9112 sections 3.2
 * and 6.1, or that has an unknown expectation, RFC 9110 section 10.1.1. Node.js rejects other malformed headers.
 */
function findHeaderError({ headers, httpVersion }: IncomingMessage): PlantStoreError | undefined {
  const { host, expect, 'transfer-encoding': coding } = headers;
  // Node.js joins several headers by a comma and a space, `joinDuplicateHeaders`.
  if (host === undefined ? httpVersion !== '1.0' : host.includes(', ')) {
    return new MalformedRequestError('The request must have exactly one Host header.');
  }
  if (coding !== undefined && (coding.toLowerCase() !== 'chunked' || httpVersion === '1.0')) {
    return new MalformedRequestError('The only Transfer-Encoding is chunked, in HTTP/1.1.');
  }
  const isMet = expect === undefined || /100-continue/i.test(expect);
  return isMet ? undefined : new PlantStoreError('expectationFailed');
}

/** Destroys a connection. The parser creates nothing for the remaining requests of the segment. */
function destroyAtOnce(socket: Socket & { parser?: object }): void {
  socket.destroy();
  if (socket.parser) Object.assign(socket.parser, { onIncoming: () => 0 });
}

function formatResponse(error: PlantStoreError, requestId: string): string {
  const body = JSON.stringify(error.body);
  const status = error.getStatus();
  const headers = {
    // RFC 9110 section 6.6.1
    Date: new Date().toUTCString(),
    'X-Request-Id': requestId,
    ...securityHeaders,
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    Connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`;
}
