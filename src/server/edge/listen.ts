import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { Server as HttpsServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { getSystemErrorMessage } from 'node:util';
import { Logger } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance } from 'fastify';
import { OperatorError } from '../../plants/errors/operator.error';
import { PlantsRepository } from '../../plants/plants.repository';
import type { Settings } from '../settings/environment';
import { Metrics } from '../watch/metrics';
import { createHealthServer } from './http-server';

/** The first file descriptor that a service manager passes, sd_listen_fds(3). */
const FIRST_INHERITED_DESCRIPTOR = 3;

/**
 * Listens on all ports in the settings, and logs their URLs. If a service manager passes a socket, listens on it
 * instead of `HOST` and `PORT`. That socket stays open while the service restarts, so that new connections
 * wait instead of being refused.
 *
 * @param onFailure called when the inherited socket is a Unix socket, to end the process at once
 * @throws OperatorError when an address or the inherited socket cannot be used
 */
export async function listen(
  app: NestFastifyApplication,
  settings: Settings,
  onFailure: (error: unknown) => never,
): Promise<void> {
  const { host, port, healthPort, docs } = settings;
  if (hasInheritedSocket(process.env)) await listenOnInheritedSocket(app, onFailure);
  else await listenOn('PORT', host, port, (address) => app.listen({ port, host: address }));
  const logger = new Logger('PlantStore');
  logger.log(`Listening on ${urlOf(app.getHttpServer())}`);
  if (healthPort !== undefined) {
    const instance: FastifyInstance = app.getHttpAdapter().getInstance();
    const server = createHealthServer(instance, settings, app.get(Metrics));
    await listenOn('HEALTH_PORT', host, healthPort, (address) =>
      once(server.listen(healthPort, address), 'listening'),
    );
    logger.log(`Health and metrics also on ${urlOf(server)}`);
  }
  // If the service listens on all addresses, this URL has the loopback address.
  if (docs) logger.log(`Swagger UI is at ${await app.getUrl()}/docs`);
  const failure = app.get(PlantsRepository).currentFailure();
  if (failure) logger.warn(`Not ready; create requests get 503: ${failure.message}`);
}

/** @throws OperatorError when the service manager passes several sockets */
function hasInheritedSocket({ LISTEN_PID, LISTEN_FDS }: NodeJS.ProcessEnv): boolean {
  // The variables may have been meant for a parent of this process.
  if (LISTEN_FDS === undefined || Number(LISTEN_PID) !== process.pid) return false;
  if (LISTEN_FDS === '1') return true;
  throw new OperatorError(
    `The service manager passes ${LISTEN_FDS} sockets (LISTEN_FDS), but the service listens on one: remove the others.`,
  );
}

/** @throws OperatorError when the socket is not a TCP socket */
async function listenOnInheritedSocket(
  app: NestFastifyApplication,
  onFailure: (error: unknown) => never,
): Promise<void> {
  const createError = (cause?: unknown): OperatorError =>
    new OperatorError(
      'The service manager passes a socket (LISTEN_FDS) that is not a TCP socket: set ListenStream to a port, or to an IP address and a port.',
      { cause },
    );
  const server: Server = app.getHttpServer();
  // Only a listening socket shows its type. Fastify throws in its own listener if this is a Unix socket.
  server.once('listening', () => {
    if (typeof server.address() === 'string') onFailure(createError());
  });
  // The address has no effect. Without one, Fastify would create extra servers without our settings.
  const options = { fd: FIRST_INHERITED_DESCRIPTOR, host: '127.0.0.1' };
  await app.listen(options).catch((error: unknown) => {
    throw createError(error);
  });
}

/** @param start starts to listen on an address */
async function listenOn(
  variable: string,
  host: string,
  port: number,
  start: (address: string) => Promise<unknown>,
): Promise<void> {
  try {
    // Resolves the name to one address. For several, Fastify would create extra servers without our settings.
    await start((await lookup(host)).address);
  } catch (error) {
    const cause = error as NodeJS.ErrnoException;
    const reason = cause.errno === undefined ? cause.message : getSystemErrorMessage(cause.errno);
    const toChange = ['EADDRINUSE', 'EACCES'].includes(cause.code ?? '') ? variable : 'HOST';
    throw new OperatorError(
      `Cannot listen on ${formatHost(host)}:${port}: ${reason}. Change ${toChange}.`,
      { cause },
    );
  }
}

function urlOf(server: Server): string {
  const { address, port } = server.address() as AddressInfo;
  return `${server instanceof HttpsServer ? 'https' : 'http'}://${formatHost(address)}:${port}`;
}

function formatHost(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}
