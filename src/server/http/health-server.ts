import type { Server as HttpServer, IncomingMessage } from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { pathOf } from '../../plants/http/request';

/** The paths that `HEALTH_PORT` serves. */
const HEALTH_PATHS = ['/health/live', '/health/ready', '/metrics'];

/** The number of connections that `HEALTH_PORT` accepts. */
const MAX_HEALTH_CONNECTIONS = 8;

declare module 'fastify' {
  interface FastifyInstance {
    healthServer: HealthServer;
  }
}

/**
 * The server of `HEALTH_PORT`. It has its own connection limit, so it responds even if the main port is full. It
 * passes its connections to the main server, which handles them like its own. It runs until the process exits, and
 * does not delay the exit.
 */
export class HealthServer {
  /** Not listening if `HEALTH_PORT` is not set. */
  readonly server: Server;
  private port: number | undefined;

  constructor(main: HttpServer) {
    // The options that Node.js sets for HTTP servers.
    this.server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      main.emit('connection', socket);
    });
    this.server.maxConnections = MAX_HEALTH_CONNECTIONS;
    this.server.unref().once('listening', () => {
      this.port = (this.server.address() as AddressInfo).port;
    });
  }

  /** Whether a request gets 404 because it came to `HEALTH_PORT`, and its path is neither health nor metrics. */
  hides({ socket, url = '' }: IncomingMessage): boolean {
    return (
      this.port !== undefined &&
      socket.localPort === this.port &&
      !HEALTH_PATHS.includes(pathOf(url))
    );
  }
}
