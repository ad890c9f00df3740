/*
 * A connection is in one of three states:
 *
 * - open: its requests are processed.
 * - ending: nothing behind its last request is processed. The response to that request says `Connection: close`, or,
 *   if it was written before, an error with this header follows it.
 * - rejected: an error was sent, or a response to a request whose body is malformed. What the client still sends is
 *   discarded, until it closes the connection or LINGER_MS have passed.
 *
 *     open ──► ending ──► rejected
 *       └────────────────────▲
 *
 * From open to ending: a request with malformed headers or with `Upgrade`; more requests in progress than allowed;
 * bytes that cannot be parsed behind a request. To rejected: bytes that cannot be parsed, or time-outs, when no earlier
 * response is left; or the last response of an ending connection that was written before the connection was ending.
 *
 * This depends on the order of events in Node.js (tested: 24.18.1, 26.5.1, 26.10.0):
 *
 * - `request` or `checkExpectation` occurs for each request when its headers are complete, for all of the requests in a
 *   segment one after the other. Then `clientError` occurs, if bytes behind them cannot be parsed, and again for each
 *   later segment. Only then the responses are sent. So a response can be complete, and wait for those before it.
 * - The listener of a request has run the first hooks of Fastify when it returns, so {@link Connections.validate} is
 *   called before the event of the next request.
 * - The responses are sent in the order of their requests. Each emits `close` when it has been sent, after those before
 *   it.
 *
 * It also depends on undocumented behavior of Node.js: `parser.onIncoming` creates each request and its response, which
 * stay in memory until the next turn of the event loop; a listener for `data` of a connection passes the bytes to the
 * parser; and `httpAllowHalfOpen` of a server.
 */
import assert from 'node:assert';
import { randomUUID } from 'node:crypto';
import {
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { Socket } from 'node:net';
import {
  type ErrorKind,
  MalformedRequestError,
  PlantStoreError,
  UnavailableError,
} from '../../plants/errors/errors';
import type { Recorder } from '../monitoring/recorder';
import { securityHeaders } from '../../plants/http/security-headers';

/** How long a rejected client may take to read the response. */
const LINGER_MS = 2000;

/** How much of what follows the last request of a connection is read. Each read takes memory until it is collected. */
const MAX_DISCARDED_BYTES = 2 ** 20;

/** How long an ending connection stays open. Every response is known within 20 seconds. */
const END_LIMIT_MS = 30_000;

/** The maximum number of requests in progress on a connection. Node.js handles a whole segment before it pauses. */
const MAX_REQUESTS_PER_CONNECTION = 64;

/** The errors for codes of `clientError`. Other codes of the HTTP parser mean a malformed request. */
const CLIENT_ERRORS: Readonly<Record<string, ErrorKind>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'requestTimeout',
  HPE_HEADER_OVERFLOW: 'headersTooLarge',
};

type State = 'open' | 'ending' | 'rejected';

/** The states that may follow a state. */
const NEXT_STATES: Readonly<Record<State, readonly State[]>> = {
  open: ['ending', 'rejected'],
  ending: ['rejected'],
  rejected: [],
};

interface Connection {
  readonly socket: Socket;
  state: State;
  /** The responses that are not sent yet, in the order of their requests. */
  readonly pending: ServerResponse[];
  /** The response to the last request, until both are complete. */
  last: ServerResponse | undefined;
  /** Forgets the response that was sent. One function per connection: one per request would cost CPU time. */
  readonly release: () => void;
}

/** Limits the requests in progress on each connection, and responds to what Node's HTTP parser rejects. */
export class Connections {
  private readonly connections = new WeakMap<Socket, Connection>();

  constructor(private readonly recorder: Recorder) {}

  /** Wraps the listener for requests of a server. Requests of a connection that ends do not reach it. */
  limit(listener: RequestListener): RequestListener {
    return (request, response) => {
      const { socket } = request;
      if (socket.destroyed) return;
      const connection = this.connections.get(socket) ?? this.add(socket);
      if (connection.state !== 'open') return;
      const { pending } = connection;
      // Undefined unless as many requests are in progress as are allowed.
      const lastAllowed = pending[MAX_REQUESTS_PER_CONNECTION - 1];
      if (lastAllowed) {
        this.endAfter(connection, lastAllowed, new UnavailableError());
        return;
      }
      connection.last = response;
      pending.push(response);
      response.on('close', connection.release);
      // Node.js drops the rest of the segment, so the next one may begin in the middle of a body.
      if (request.headers.upgrade !== undefined) this.endAfter(connection, response);
      listener(request, response);
    };
  }

  private add(socket: Socket): Connection {
    const release = (): void => {
      pending.shift();
      // Keeping the last response of each connection would take a tenth of the CPU time.
      if (pending.length === 0 && connection.last?.req.complete) connection.last = undefined;
    };
    const pending: ServerResponse[] = [];
    const connection: Connection = { socket, state: 'open', pending, last: undefined, release };
    this.connections.set(socket, connection);
    return connection;
  }

  /** Returns the error of a request with malformed headers, which is then the last of its connection. */
  validate(response: ServerResponse): PlantStoreError | undefined {
    const error = findHeaderError(response.req);
    const connection = this.connections.get(response.req.socket);
    if (error && connection?.state === 'open') this.endAfter(connection, response);
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
    const connection = this.connections.get(socket) ?? this.add(socket);
    // Node.js emits the event again for every later segment.
    if (connection.state === 'rejected') return;
    const failure = new PlantStoreError(CLIENT_ERRORS[code] ?? 'malformedRequest');
    const current = findIncomplete(connection);
    const previous = connection.pending.findLast((response) => response !== current);
    if (previous === undefined) this.reject(connection, failure);
    else if (connection.state === 'open') this.endAfter(connection, previous, failure);
  }

  /**
   * Ends a connection after a response, and processes nothing after its request.
   * @param error why, if the bytes behind the request were not processed. The client gets it behind the response if it
   *   is too late to say `Connection: close` there
   */
  private endAfter(
    connection: Connection,
    response: ServerResponse,
    error?: PlantStoreError,
  ): void {
    changeState(connection, 'ending');
    discardRequests(connection.socket);
    // Otherwise the body of the last request may still be coming.
    if (error) process.nextTick(discardInput, connection.socket);
    destroyAfter(END_LIMIT_MS, connection.socket);
    if (error && response.headersSent) {
      response.once('close', () => {
        if (connection.state === 'ending') this.reject(connection, error);
      });
    } else response.setHeader('Connection', 'close');
  }

  /** Sends an error behind the responses of a connection, and closes it. */
  private reject(connection: Connection, error: PlantStoreError): void {
    const { socket } = connection;
    changeState(connection, 'rejected');
    discardInput(socket);
    // A response has said `Connection: close`, or the connection is broken.
    if (!socket.writable) return;
    destroyAfter(LINGER_MS, socket);
    const current = findIncomplete(connection);
    // The client has the response already.
    if (current?.headersSent) {
      socket.end();
      return;
    }
    const requestId = randomUUID();
    socket.end(formatResponse(error, requestId));
    this.recorder.recordOnSocket(error, requestId, socket, current);
  }
}

/** Destroys a connection after a time, unless it closes earlier. */
function destroyAfter(limitMs: number, socket: Socket): void {
  const timer = setTimeout(() => socket.destroy(), limitMs).unref();
  socket.once('close', () => {
    clearTimeout(timer);
  });
}

function changeState(connection: Connection, next: State): void {
  const { state } = connection;
  assert(NEXT_STATES[state].includes(next), `A connection cannot change from ${state} to ${next}.`);
  connection.state = next;
}

/** Returns the response to the request whose body is being received. Bytes that cannot be parsed belong to it. */
function findIncomplete({ last }: Connection): ServerResponse | undefined {
  return last?.req.complete === false ? last : undefined;
}

/** Lets the parser discard the requests that follow in a segment: it creates no responses, and keeps no bodies. */
function discardRequests(socket: Socket & { parser?: object | null }): void {
  const onIncoming = (request: IncomingMessage): number => {
    // Otherwise Node.js would close a connection with CONNECT, and the responses in progress would be lost.
    Object.assign(request, { upgrade: false });
    request.resume();
    return 0;
  };
  if (socket.parser) Object.assign(socket.parser, { onIncoming });
}

/**
 * Discards what a client sends from now on, without parsing it: the connection no longer has the parser's listener.
 * After the last response, it stays open until the client has closed it: the kernel would reset a connection that is
 * closed with unread bytes, and the client could lose the response.
 */
function discardInput(socket: Socket): void {
  const end = socket.bytesRead + MAX_DISCARDED_BYTES;
  socket.removeAllListeners('data').on('data', () => {
    // The rest stays in the kernel, which stops the client.
    if (socket.bytesRead > end) socket.pause();
  });
  socket.resume();
  // Node.js calls this after a response with `Connection: close`.
  socket.destroySoon = () => {
    socket.end();
    destroyAfter(LINGER_MS, socket);
  };
}

/**
 * Lets clients close their side of a connection behind a complete request, RFC 9112 section 9.6. Without it, Node.js
 * closes the connection, and the response is lost.
 */
export function allowHalfOpen(server: Server): void {
  Object.assign(server, { httpAllowHalfOpen: true });
}

/**
 * Returns the error of a request that proxies and servers are known to read differently, RFC 9112 sections 3.2
 * and 6.1, or that has an unknown expectation, RFC 9110 section 10.1.1. Node.js rejects other malformed headers.
 */
function findHeaderError({ headers, httpVersion }: IncomingMessage): PlantStoreError | undefined {
  const { host, expect, 'transfer-encoding': coding } = headers;
  // Node.js also accepts 0.9, which has no headers, and 2.0, which has no request line.
  if (httpVersion !== '1.1' && httpVersion !== '1.0') {
    return new MalformedRequestError('The HTTP version must be 1.0 or 1.1.');
  }
  // Node.js joins several headers by a comma and a space, `joinDuplicateHeaders`.
  if (host === undefined ? httpVersion !== '1.0' : host.includes(', ')) {
    return new MalformedRequestError('The request must have exactly one Host header.');
  }
  if (coding !== undefined && (coding.toLowerCase() !== 'chunked' || httpVersion === '1.0')) {
    return new MalformedRequestError('The only Transfer-Encoding is chunked, in HTTP/1.1.');
  }
  if (expect === undefined || expect.toLowerCase() === '100-continue') return undefined;
  return new PlantStoreError('expectationFailed');
}

function formatResponse(error: PlantStoreError, requestId: string): string {
  const body = JSON.stringify(error.body);
  const status = error.getStatus();
  const headers = {
    // RFC 9110 section 6.6.1
    Date: new Date().toUTCString(),
    'X-Request-Id': requestId,
    ...securityHeaders,
    ...error.headers,
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    Connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`;
}
