import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** The open connections of a server and the latest response on each. */
export class Connections {
  private readonly latest = new Map<Socket, ServerResponse | undefined>();
  private draining = false;

  constructor(private readonly server: Server) {
    server.on('connection', (socket: Socket) => {
      this.latest.set(socket, undefined);
      socket.once('close', () => this.latest.delete(socket));
    });
    server.prependListener('request', (request, response) => {
      this.latest.set(request.socket, response);
      if (this.draining) response.setHeader('Connection', 'close');
    });
  }

  /** The response to the latest request on a connection, while it is unfinished. */
  unfinishedResponse(socket: Socket): ServerResponse | undefined {
    const response = this.latest.get(socket);
    return response?.writableFinished === false ? response : undefined;
  }

  /**
   * Has every connection close once the requests on it are answered. Node would keep one open for
   * the whole keep-alive time when its request was under way as the server began to close.
   *
   * @param limit milliseconds after which connections are cut, whatever is on them
   */
  drain(limit: number): void {
    this.draining = true;
    for (const [socket, response] of this.latest) {
      if (response === undefined && socket.bytesRead === 0) socket.destroy();
      else if (response?.headersSent === false) response.setHeader('Connection', 'close');
    }
    setTimeout(() => {
      this.server.closeAllConnections();
    }, limit).unref();
  }
}
