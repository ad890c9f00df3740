import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** How long an idle connection stays open while draining, in milliseconds. */
const LINGER = 500;

/**
 * A connection of Node's HTTP server, with the response whose turn it is. Node does not document the
 * member.
 */
interface HttpSocket extends Socket {
  readonly _httpMessage?: ServerResponse | null;
}

/** The open connections of a server, and how many requests are under way on each. */
export class Connections {
  private readonly underWay = new Map<HttpSocket, number>();
  /** All of them; those of TLS below its own, from before their handshake. */
  private readonly sockets = new Set<Socket>();
  private draining = false;
  private readonly allClosed = Promise.withResolvers<undefined>();

  constructor(private readonly server: Server) {
    server.on('connection', (socket: Socket) => {
      this.sockets.add(socket);
      socket.once('close', () => this.sockets.delete(socket));
    });
    // A TLS server has both events for a connection; requests come over the second one's socket.
    const event = 'setSecureContext' in server ? 'secureConnection' : 'connection';
    server.on(event, (socket: HttpSocket) => {
      this.underWay.set(socket, 0);
      socket.once('close', () => {
        this.underWay.delete(socket);
        if (this.draining && this.underWay.size === 0) this.allClosed.resolve(undefined);
      });
    });
    server.on('timeout', (socket: HttpSocket) => {
      this.cutSilent(socket);
    });
    server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
      this.underWay.set(socket, this.count(socket) + 1);
      response.once('close', () => {
        this.answered(socket);
      });
      if (this.draining) response.setHeader('Connection', 'close');
    });
  }

  /**
   * Waits for the answers to the requests on a connection, and gives back the response to a request
   * that is incomplete and so gets no answer, if the last one is.
   */
  async settled(socket: HttpSocket): Promise<ServerResponse | undefined> {
    for (;;) {
      const { _httpMessage: response } = socket;
      if (!response) return undefined;
      if (this.count(socket) === 1 && !response.req.complete) return response;
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
    for (const [socket, count] of this.underWay) {
      const { _httpMessage: response } = socket;
      if (count === 1 && response?.headersSent === false) response.setHeader('Connection', 'close');
    }
    if (this.underWay.size === 0) return;
    await Promise.race([this.allClosed.promise, sleep(Math.min(LINGER, limit))]);
    for (const socket of this.underWay.keys()) {
      if (socket.bytesRead === 0) socket.destroy();
    }
  }

  /**
   * Cuts a connection that is idle, or whose client does not read its answers: at the second time-out
   * without progress, since Node looks at the first one whether any was made. A request that waits
   * for the store is not cut.
   */
  private cutSilent(socket: HttpSocket): void {
    if (this.count(socket) === 0 || socket.writableLength > 0) socket.destroy();
  }

  private answered(socket: HttpSocket): void {
    if (!this.underWay.has(socket)) return;
    const count = this.count(socket) - 1;
    this.underWay.set(socket, count);
    if (this.draining && count === 0) socket.end();
  }

  private count(socket: HttpSocket): number {
    return this.underWay.get(socket) ?? 0;
  }
}
