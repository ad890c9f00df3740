import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { MalformedRequestError } from '../../errors';
import { rawErrorAnswer } from '../refusal';

/**
 * Depends on what Node.js does and does not document, tried with 24.16 and 26.10: `_last` of a response; that a socket's
 * `destroySoon` closes it behind the last response; that an HTTP server closes idle connections in
 * `close` but not in that of its base class; `httpAllowHalfOpen`; that the parser takes nothing behind
 * a close in a trailer; and what Node leaves open when a connection breaks behind a CONNECT.
 * `connections.spec.ts` and `test/http/wire.e2e-spec.ts` fail when that changes.
 */

/** How long an idle connection stays open while draining, in milliseconds. */
const LINGER = 500;

/** How long a client has to close its side of a connection that has ended, in milliseconds. */
const CLOSE_TIMEOUT = 2000;

const nothing = (): void => undefined;

/** RFC 9112 section 9.6. Node does not look for it in HTTP/1.0. */
const CLOSE_OPTION = /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i;

/** Node does not document the member: whether the connection closes once the response is written. */
type Response = ServerResponse & { readonly _last?: boolean };

/** A connection, and its requests that are not finished. */
interface Connection {
  /** The responses that are not closed yet, in order. */
  readonly unanswered: Response[];
  /** The response to the latest request; undefined when that is received and answered. */
  latest: Response | undefined;
  /** Ends the connection as {@link Connections.end} says, once the requests before are answered. */
  end: (() => void) | undefined;
  /** Called when a response closes. One function for all, because a closure costs each request. */
  readonly onClose: () => void;
}

/**
 * The open connections of a server. It decides which requests are processed: none behind the end of its
 * connection, RFC 9112 section 9.6.
 *
 * A connection ends with a response that closes it, or with {@link end}. Whatever follows is read and
 * ignored until the client closes its side, for a moment at most. Closing at once would reset the
 * connection, and the client would lose what it has not read yet.
 */
export class Connections {
  private readonly open = new Map<Socket, Connection>();
  /** All sockets. With TLS these are the raw ones, known before the handshake ends. */
  private readonly sockets = new Set<Socket>();
  private draining = false;
  private readonly allClosed = Promise.withResolvers<undefined>();

  constructor(private readonly server: Server) {
    // Answers a client that has ended its side.
    Object.assign(server, { httpAllowHalfOpen: true });
    server.on('connection', (socket: Socket) => {
      this.sockets.add(socket);
      socket.once('close', () => {
        this.sockets.delete(socket);
        if (this.draining && this.sockets.size === 0) this.allClosed.resolve(undefined);
      });
    });
    // A TLS server emits both events for a connection. Requests have the socket of the second one.
    const event = 'setSecureContext' in server ? 'secureConnection' : 'connection';
    server.on(event, (socket: Socket) => {
      this.add(socket);
    });
    server.on('timeout', (socket: Socket) => {
      // Idle, or its client does not read its answers: Node emits the event at the second time-out
      // without progress. A request that waits for the store is left alone.
      const isBusy = (this.open.get(socket)?.unanswered.length ?? 0) > 0;
      if (!isBusy || socket.writableLength > 0) socket.destroy();
    });
  }

  private add(socket: Socket): void {
    const connection: Connection = {
      unanswered: [],
      latest: undefined,
      end: undefined,
      onClose: () => {
        connection.unanswered.shift();
        if (connection.unanswered.length === 0 && !hasEnded(connection)) {
          // Released now and not at the next request: with thousands of connections that is memory.
          if (connection.latest?.req.complete) connection.latest = undefined;
          if (this.draining) this.end(socket);
        }
        if (isSettled(connection)) connection.end?.();
      },
    };
    this.open.set(socket, connection);
    // Node calls it behind the last response, and would close at once.
    socket.destroySoon = () => {
      if (connection.end === undefined) close(socket);
    };
    // Node answers what was received whole, and closes. It waits for the rest of some trailers.
    socket.once('end', () => {
      const { latest, end } = connection;
      if (awaitsBody(connection))
        this.end(socket, () => rawErrorAnswer(new MalformedRequestError()));
      else if (latest?.headersSent === false && !end) latest.shouldKeepAlive = false;
    });
    socket.once('close', () => {
      this.open.delete(socket);
      // Behind a CONNECT, Node does not close the responses before it, which hold what they use.
      setImmediate(() => {
        for (const response of [...connection.unanswered]) response.emit('close');
      });
    });
  }

  /**
   * Whether to process a request: false when its connection has ended before, and the request must be
   * left alone. Counts it as unanswered until its response is closed.
   */
  admit(request: IncomingMessage, response: ServerResponse): boolean {
    const connection = this.open.get(request.socket);
    if (connection === undefined || hasEnded(connection)) {
      request.resume();
      request.socket.resume();
      return false;
    }
    connection.unanswered.push(response);
    response.on('close', connection.onClose);
    if (closesConnection(request)) response.shouldKeepAlive = false;
    if (request.headers['transfer-encoding'] !== undefined) {
      // Node's parser takes nothing behind a close in a trailer, so the answer must say it.
      request.once('end', () => {
        if (hasClosingTrailer(response)) response.shouldKeepAlive = false;
      });
    }
    // RFC 9112 section 9.6: only the last answer on a connection may say that it closes.
    if (this.draining) {
      if (connection.latest?.headersSent === false) connection.latest.removeHeader('Connection');
      response.setHeader('Connection', 'close');
    }
    connection.latest = response;
    return true;
  }

  /**
   * Ends a connection once the complete requests on it are answered. Nothing more is read from it.
   *
   * @param answer makes the bytes of a last answer. It is for the incomplete request, and left out when
   *   that has been answered, or for what follows the last request, and left out when that closes.
   */
  end(socket: Socket, answer?: () => string): void {
    const connection = this.open.get(socket);
    if (connection === undefined) {
      socket.destroy();
      return;
    }
    socket.resume();
    if (hasEnded(connection) && !awaitsBody(connection)) return;
    connection.end ??= () => {
      connection.end = nothing;
      const { latest } = connection;
      const isAnswered = latest?.req.complete === false && latest.headersSent;
      if (answer && !isAnswered && !hasClosingTrailer(latest)) socket.write(answer());
      close(socket);
    };
    if (isSettled(connection)) connection.end();
  }

  /**
   * Accepts no new connections, and closes each open one once its requests are answered.
   *
   * An idle connection stays open for a moment. Its client may have sent a request that has not
   * arrived yet; closing at once, as Node's HTTP server does, would reset it.
   *
   * @param limit milliseconds after which all connections are destroyed
   */
  async drain(limit: number): Promise<void> {
    this.draining = true;
    NetServer.prototype.close.call(this.server);
    setTimeout(() => {
      for (const socket of this.sockets) socket.destroy();
    }, limit).unref();
    for (const { latest } of this.open.values()) {
      if (latest?.headersSent === false) latest.setHeader('Connection', 'close');
    }
    if (this.sockets.size === 0) return;
    await Promise.race([this.allClosed.promise, sleep(Math.min(LINGER, limit))]);
    // Node closes idle connections next, but counts one that never sent a byte as busy.
    for (const socket of [...this.sockets, ...this.open.keys()]) {
      if (socket.bytesRead === 0) socket.destroy();
    }
  }
}

/** Whether no later request is processed, because a response closes the connection or it was ended. */
function hasEnded({ latest, end }: Connection): boolean {
  return end !== undefined || (latest !== undefined && (!latest.shouldKeepAlive || !!latest._last));
}

/** Whether Node's parser takes nothing behind the request of a response, because of a trailer. */
function hasClosingTrailer(response: Response | undefined): boolean {
  return CLOSE_OPTION.test(response?.req.trailers.connection ?? '');
}

/** Whether the latest request is neither received completely nor answered. */
function awaitsBody({ latest }: Connection): boolean {
  return latest !== undefined && !latest.req.complete && !latest.headersSent;
}

/** Whether all complete requests are answered. */
function isSettled(connection: Connection): boolean {
  return connection.unanswered.length === (awaitsBody(connection) ? 1 : 0);
}

/** Whether the response to a request closes the connection, in cases that Node does not know. */
function closesConnection({ headers, httpVersionMinor }: IncomingMessage): boolean {
  // RFC 9110 section 7.8 lets us ignore it. Node does too, but drops the bytes behind it.
  if (headers.upgrade !== undefined) return true;
  return httpVersionMinor === 0 && CLOSE_OPTION.test(headers.connection ?? '');
}

/** Closes our side of a connection, and the connection when the client closes its side. */
function close(socket: Socket): void {
  socket.resume();
  socket.end();
  const timer = setTimeout(() => socket.destroy(), CLOSE_TIMEOUT).unref();
  socket.once('close', () => {
    clearTimeout(timer);
  });
}
