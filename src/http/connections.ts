import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** How long an idle connection stays open while draining, in milliseconds. */
const LINGER = 500;

/** The open connections of a server and the latest response on each. */
export class Connections {
  private readonly latest = new Map<Socket, ServerResponse | undefined>();
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
    server.on(event, (socket: Socket) => {
      this.latest.set(socket, undefined);
      socket.once('close', () => {
        this.latest.delete(socket);
        if (this.draining && this.latest.size === 0) this.allClosed.resolve(undefined);
      });
    });
    server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
      this.latest.set(request.socket, response);
      if (this.draining) response.setHeader('Connection', 'close');
    });
  }

  /**
   * Lets go of a response that is finished. The map lives long: what it holds at the moment of a
   * garbage collection would be moved to the old generation, with all that belongs to the request.
   */
  release(response: ServerResponse): void {
    const { socket } = response.req;
    if (this.latest.get(socket) === response) this.latest.set(socket, undefined);
  }

  /** The response to the latest request on a connection, while it is unfinished. */
  unfinishedResponse(socket: Socket): ServerResponse | undefined {
    const response = this.latest.get(socket);
    return response?.writableFinished === false ? response : undefined;
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
    for (const response of this.latest.values()) {
      if (response?.headersSent === false) response.setHeader('Connection', 'close');
    }
    if (this.latest.size === 0) return;
    await Promise.race([this.allClosed.promise, sleep(Math.min(LINGER, limit))]);
    for (const [socket, response] of this.latest) {
      if (response === undefined && socket.bytesRead === 0) socket.destroy();
    }
  }
}
