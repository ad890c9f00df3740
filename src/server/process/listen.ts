/* Depends on undocumented behavior of Nest and Fastify (tested: 12.5.0 and 5.12.8): they pass `fd` on to Node.js. */
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { Logger } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance } from 'fastify';
import { OperatorError } from '../../plants/errors/operator.error';
import { Metrics } from '../monitoring/metrics';
import type { Settings } from '../settings/environment';

/** The first file descriptor that a service manager passes, sd_listen_fds(3). */
const FIRST_INHERITED_DESCRIPTOR = 3;

const MAX_HEALTH_CONNECTIONS = 8;

/**
 * The maximum number of new connections that wait in the kernel until they are accepted: the limit that Linux has by
 * default. Node.js accepts one in each turn of its event loop. Beyond the limit, clients retry after a second or more.
 */
const BACKLOG = 4096;

/**
 * Listens on all ports in the settings, and logs their URLs. A socket that a service manager passes replaces `HOST` and
 * `PORT`. It stays open while the service restarts, so that new connections wait instead of being refused.
 * @param onFailure called when the inherited socket cannot be used, to end the process at once
 * @throws OperatorError when an address cannot be used
 */
export async function listen(
  app: NestFastifyApplication,
  settings: Settings,
  onFailure: (error: unknown) => never,
): Promise<void> {
  const { host, port, healthPort, docs } = settings;
  if (hasInheritedSocket(process.env)) {
    await listenOnInheritedSocket(app, onFailure);
  } else {
    await listenOn(host, 'PORT', (address) =>
      app.listen({ port, host: address, backlog: BACKLOG }),
    );
  }
  const logger = new Logger('PlantStore');
  logger.log(`Listening on ${urlOf(app.getHttpServer(), settings)}`);
  if (healthPort !== undefined) {
    const server = createHealthServer(app.getHttpServer(), app.get(Metrics));
    await listenOn(host, 'HEALTH_PORT', (address) =>
      once(server.listen(healthPort, address), 'listening'),
    );
    const instance: FastifyInstance = app.getHttpAdapter().getInstance();
    instance.healthPort = (server.address() as AddressInfo).port;
    logger.log(`Health and metrics also on ${urlOf(server, settings)}`);
  }
  // If the service listens on all addresses, this URL has the loopback address.
  if (docs) logger.log(`Swagger UI is at ${await app.getUrl()}/docs`);
}

/**
 * Creates the server of `HEALTH_PORT`. It has its own connection limit, so it responds even if the main port is full.
 * Beyond the limit, a new connection replaces the oldest one, so idle connections cannot keep probes out. It passes its
 * connections to the main server, runs until the process exits, and does not delay the exit.
 */
function createHealthServer(main: Server, metrics: Metrics): Server {
  /** The open connections, the oldest first. */
  const sockets = new Set<Socket>();
  // The options that Node.js sets for HTTP servers.
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    const [oldest] = sockets;
    if (oldest && sockets.size >= MAX_HEALTH_CONNECTIONS) {
      sockets.delete(oldest);
      oldest.destroy();
      server.emit('drop');
    }
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    main.emit('connection', socket);
  });
  server.on('drop', () => {
    metrics.countDroppedConnection();
  });
  server.once('drop', () => {
    new Logger('PlantStore').warn(
      `Closed the oldest connection to HEALTH_PORT: the limit of ${MAX_HEALTH_CONNECTIONS} open connections is reached. Further ones are only counted.`,
    );
  });
  return server.unref();
}

/** @throws OperatorError when their number is invalid, or there are several: the kernel would accept connections that nobody handles */
function hasInheritedSocket({ LISTEN_PID, LISTEN_FDS }: NodeJS.ProcessEnv): boolean {
  // The variables may have been meant for a parent of this process.
  if (Number(LISTEN_PID) !== process.pid) return false;
  const text = LISTEN_FDS?.trim() ?? '';
  if (!/^\d*$/.test(text)) {
    throw new OperatorError(
      `LISTEN_FDS must be the number of sockets that the service manager passes. It is ${JSON.stringify(text)}.`,
    );
  }
  const count = Number(text);
  if (count <= 1) return count === 1;
  throw new OperatorError(
    `The service manager passes ${count} sockets (LISTEN_FDS), but the service listens on one: set ListenStream once, and use HEALTH_PORT for another port.`,
  );
}

async function listenOnInheritedSocket(
  app: NestFastifyApplication,
  onFailure: (error: unknown) => never,
): Promise<void> {
  const fail = (reason: string): never =>
    onFailure(
      new OperatorError(
        `The socket that the service manager passes (LISTEN_FDS) cannot be used: ${reason}. Set ListenStream to a port, or to an IP address and a port.`,
      ),
    );
  const server: Server = app.getHttpServer();
  // Only a listening socket shows its type. Fastify throws in its own listener if this is a Unix socket.
  server.once('listening', () => {
    const address = server.address();
    if (address === null || typeof address === 'string') fail('it is a Unix socket');
  });
  // The address has no effect. Without one, Fastify would create extra servers without our settings. A backlog would
  // have no effect either: for a descriptor, Node.js takes only a second argument, which Fastify does not pass, or 511.
  const options = { fd: FIRST_INHERITED_DESCRIPTOR, host: '127.0.0.1' };
  await app.listen(options).catch((error: unknown) => fail((error as Error).message));
}

async function listenOn(
  host: string,
  portVariable: string,
  start: (address: string) => Promise<unknown>,
): Promise<void> {
  try {
    // Resolves the name to one address. For several, Fastify would create extra servers without our settings.
    await start((await lookup(host)).address);
  } catch (cause) {
    const { message } = cause as Error;
    throw new OperatorError(`HOST and ${portVariable} cannot be used: ${message}.`, { cause });
  }
}

function urlOf(server: Server, { tls }: Settings): string {
  const { address, port } = server.address() as AddressInfo;
  const host = address.includes(':') ? `[${address}]` : address;
  return `${tls ? 'https' : 'http'}://${host}:${port}`;
}
