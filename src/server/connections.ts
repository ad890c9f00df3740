import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** How long an idle connection stays open while draining, in milliseconds. */
const LINGER = 500;

/** How long a client that still sends has to notice the answer, in milliseconds. */
const GENTLE_TIMEOUT = 2000;

/**
 * A connection of Node's HTTP server, with the response whose turn it is. Node does not document the
 * member.
 */
interface HttpSocket extends Socket {
  readonly _httpMessage?: ServerResponse | null;
}

/** What is under way on a connection. */
interface Traffic {
  /** Requests that are not answered yet. */
  underWay: number;
  /** The response to the latest request, while any is under way. */
  latest: ServerResponse | undefined;
  /** Whether an answer closes the connection, so that nothing behind its request counts. */
  closing: boolean;
  /** To be called for each response that is closed; one function, for all cost each request. */
  readonly onClose: () => void;
}

/** The open connections of a server, and what is under way on each. */
export class Connections {
  private readonly traffic = new Map<HttpSocket, Traffic>();
  /** All of them; those of TLS below its own, from before their handshake. */
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
    // A TLS server has both events for a connection; requests come over the second one's socket.
    const event = 'setSecureContext' in server ? 'secureConnection' : 'connection';
    server.on(event, (socket: HttpSocket) => {
      const traffic: Traffic = {
        underWay: 0,
        latest: undefined,
        closing: false,
        onClose: () => {
          traffic.underWay--;
          if (traffic.underWay > 0) return;
          // Not kept until the next one comes: with thousands of connections that is memory.
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
      this.cutSilent(socket);
    });
    server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
      this.begin(request, response);
    });
  }

  /** Counts a request as under way until its response is closed. */
  begin({ socket }: IncomingMessage, response: ServerResponse): void {
    const traffic = this.traffic.get(socket);
    if (traffic === undefined) return;
    traffic.underWay++;
    response.on('close', traffic.onClose);
    // RFC 9112 section 9.6: no more than the last answer on a connection may close it.
    if (this.draining) {
      if (traffic.latest?.headersSent === false) traffic.latest.removeHeader('Connection');
      response.setHeader('Connection', 'close');
    }
    traffic.latest = response;
  }

  /** Takes no further request of a connection, which the answer to this one is going to close. */
  endWith({ socket }: IncomingMessage): void {
    const traffic = this.traffic.get(socket);
    if (traffic) traffic.closing = true;
  }

  /** Whether a request stands behind one that ends its connection. */
  comesTooLate({ socket }: IncomingMessage): boolean {
    return this.traffic.get(socket)?.closing ?? false;
  }

  /**
   * Waits for the answers to the requests on a connection, and gives back the response to a request
   * that is incomplete and so gets no answer, if the last one is.
   */
  async settled(socket: HttpSocket): Promise<ServerResponse | undefined> {
    for (;;) {
      const { _httpMessage: response } = socket;
      if (!response) return undefined;
      if (this.traffic.get(socket)?.underWay === 1 && !response.req.complete) return response;
      await new Promise<void>((resolve) => response.once('close', resolve));
    }
  }

  /**
   * Takes no new connections, and has each open one close once the requests on it are answered.
   *
   * A connection that is idle gets a moment more before it may be closed: its client may have sent
   * a request that is on its way, which closing at once, as Node's HTTP server does, would reset.
   *
   * @param limit milliseconds after which connections are cut, whatever is on them
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
    // Node closes idle connections next, but takes one that never sent a byte for busy.
    for (const socket of [...this.sockets, ...this.traffic.keys()]) {
      if (socket.bytesRead === 0) socket.destroy();
    }
  }

  /**
   * Cuts a connection that is idle, or whose client does not read its answers: at the second time-out
   * without progress, since Node looks at the first one whether any was made. A request that waits
   * for the store is not cut.
   */
  private cutSilent(socket: HttpSocket): void {
    if (!this.traffic.get(socket)?.underWay || socket.writableLength > 0) socket.destroy();
  }
}

/**
 * Closes a connection whose client may still be sending: RFC 9112 section 9.6. Closed at once, it
 * would be reset, and the answer lost with what the client had not read yet.
 */
export function closeGently(socket: Socket): void {
  socket.end();
  setTimeout(() => socket.destroy(), GENTLE_TIMEOUT).unref();
}
