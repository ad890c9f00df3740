import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** How long an idle connection stays open while draining, in milliseconds. */
const LINGER = 500;

/** How long a client that is still sending has to read the answer, in milliseconds. */
const GENTLE_TIMEOUT = 2000;

/**
 * A connection of Node's HTTP server, with the response that Node writes now. Node does not document
 * the member.
 */
interface HttpSocket extends Socket {
  readonly _httpMessage?: ServerResponse | null;
}

/** The requests of a connection that are not finished. */
interface Traffic {
  /** How many requests are not answered yet. */
  unanswered: number;
  /** The response to the latest request; undefined when none is unanswered. */
  latest: ServerResponse | undefined;
  /** Whether an answer closes the connection, so that no later request is processed. */
  closing: boolean;
  /** Called when a response closes. One function for all, because a closure costs each request. */
  readonly onClose: () => void;
}

/** The open connections of a server, and the unanswered requests on each. */
export class Connections {
  private readonly traffic = new Map<HttpSocket, Traffic>();
  /** All sockets. With TLS these are the raw ones, known before the handshake ends. */
  private readonly sockets = new Set<Socket>();
  private draining = false;
  private readonly allClosed = Promise.withResolvers<undefined>();

  constructor(private readonly server: Server) {
    server.on('connection', (socket: Socket) => {
      this.sockets.add(socket);
      socket.once('close', () => {
        this.sockets.delete(socket);
        if (this.draining && this.sockets.size === 0) this.allClosed.resolve(undefined);
      });
    });
    // A TLS server emits both events for a connection. Requests have the socket of the second one.
    const event = 'setSecureContext' in server ? 'secureConnection' : 'connection';
    server.on(event, (socket: HttpSocket) => {
      const traffic: Traffic = {
        unanswered: 0,
        latest: undefined,
        closing: false,
        onClose: () => {
          traffic.unanswered--;
          if (traffic.unanswered > 0) return;
          // Released now and not at the next request: with thousands of connections that is memory.
          traffic.latest = undefined;
          if (this.draining) socket.end();
        },
      };
      this.traffic.set(socket, traffic);
      const destroySoon = socket.destroySoon.bind(socket);
      socket.destroySoon = () => {
        if (traffic.latest?.req.complete === false) closeGently(socket);
        else destroySoon();
      };
      socket.once('close', () => {
        this.traffic.delete(socket);
      });
    });
    server.on('timeout', (socket: HttpSocket) => {
      this.destroyStalled(socket);
    });
    server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
      this.track(request, response);
    });
  }

  /** Counts a request as unanswered until its response is closed. */
  track({ socket }: IncomingMessage, response: ServerResponse): void {
    const traffic = this.traffic.get(socket);
    if (traffic === undefined) return;
    traffic.unanswered++;
    response.on('close', traffic.onClose);
    // RFC 9112 section 9.6: only the last answer on a connection may say that it closes.
    if (this.draining) {
      if (traffic.latest?.headersSent === false) traffic.latest.removeHeader('Connection');
      response.setHeader('Connection', 'close');
    }
    traffic.latest = response;
  }

  /** Declares that the answer to this request closes the connection: later requests are ignored. */
  closeAfter({ socket }: IncomingMessage): void {
    const traffic = this.traffic.get(socket);
    if (traffic) traffic.closing = true;
  }

  /** Whether a request follows one whose answer closes the connection. */
  followsClosingRequest({ socket }: IncomingMessage): boolean {
    return this.traffic.get(socket)?.closing ?? false;
  }

  /**
   * Waits until the complete requests of a connection are answered.
   *
   * @returns the response to the last request when that request is incomplete
   */
  async settled(socket: HttpSocket): Promise<ServerResponse | undefined> {
    for (;;) {
      const { _httpMessage: response } = socket;
      if (!response) return undefined;
      if (this.traffic.get(socket)?.unanswered === 1 && !response.req.complete) return response;
      await new Promise<void>((resolve) => response.once('close', resolve));
    }
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
    for (const { latest } of this.traffic.values()) {
      if (latest?.headersSent === false) latest.setHeader('Connection', 'close');
    }
    if (this.sockets.size === 0) return;
    await Promise.race([this.allClosed.promise, sleep(Math.min(LINGER, limit))]);
    // Node closes idle connections next, but counts one that never sent a byte as busy.
    for (const socket of [...this.sockets, ...this.traffic.keys()]) {
      if (socket.bytesRead === 0) socket.destroy();
    }
  }

  /**
   * Destroys a connection that is idle or whose client does not read its answers. Node emits the
   * event at the second time-out without progress. A request that waits for the store is left alone.
   */
  private destroyStalled(socket: HttpSocket): void {
    if (!this.traffic.get(socket)?.unanswered || socket.writableLength > 0) socket.destroy();
  }
}

/**
 * Closes a connection whose client may still be sending, RFC 9112 section 9.6. Closing at once would
 * reset it, and the client would lose the answer with all that it has not read yet.
 */
export function closeGently(socket: Socket): void {
  socket.end();
  setTimeout(() => socket.destroy(), GENTLE_TIMEOUT).unref();
}
