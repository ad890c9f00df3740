/*
 * Depends on undocumented behavior of Node.js (tested: 26.10.0): `net.Server.prototype.close` makes an HTTP server stop
 * listening and leaves its connections open, and `process.exit` joins worker threads.
 */
import type { Server } from 'node:http';
import { Server as NetServer } from 'node:net';
import { constants } from 'node:os';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { PlantsRepository } from '../../plants/plants.repository';
import type { Settings } from '../settings/environment';
import { Readiness } from '../monitoring/health';
import { onSignal } from './signals';

/** The fraction of the shutdown time for open requests. The rest is for closing the store. */
const DRAIN_TIME_FRACTION = 0.8;

/** How long connections stay open after the service stops listening, so that their next response can close them. */
const CLOSE_DELAY_MS = 500;

/** How long responses may take to leave once only a restart can make the store usable again. */
const FINAL_DRAIN_MS = 1000;

/** The maximum number of turns of the event loop that accept connections before the service stops listening. */
const MAX_ACCEPT_TURNS = 1000;

/**
 * Closes the application on SIGTERM, SIGINT and SIGHUP. It reports not ready at once, closes after the grace,
 * and exits with code 0. A second signal ends the process at once, and so does SHUTDOWN_TIMEOUT.
 * If only a restart can make the store usable again, it closes without the grace, waits a second for incomplete requests,
 * and exits with code 1, so that its supervisor restarts it.
 * @param onFailure called when closing fails, to end the process
 */
export function handleShutdown(
  app: NestFastifyApplication,
  { shutdownGrace, shutdownTimeout }: Settings,
  onFailure: (error: unknown) => void,
): void {
  const logger = new Logger('PlantStore');
  let exitCode = 0;

  async function close(graceMs: number): Promise<void> {
    app.get(Readiness).drain();
    setTimeout(() => {
      console.error(
        `The service did not shut down within ${shutdownTimeout} ms (SHUTDOWN_TIMEOUT).`,
      );
      endAtOnce(1);
    }, shutdownTimeout).unref();
    await sleep(graceMs);
    await app.close();
    logger.log('Stopped.');
    process.exit(exitCode);
  }

  onSignal((first) => {
    onSignal((second) => {
      endAtOnce(128 + constants.signals[second]);
    });
    logger.log(`Received ${first}, shutting down.`);
    close(shutdownGrace).catch(onFailure);
  });
  // The health of the store has logged the reason. The store may also fail while it closes.
  const closeAfterFailure = (): Promise<void> => {
    exitCode = 1;
    closeConnectionsAfter(FINAL_DRAIN_MS, app.getHttpServer());
    return close(0);
  };
  app.get(PlantsRepository).restartNeeded.then(closeAfterFailure).catch(onFailure);
}

/**
 * Stops listening, and gives open connections a moment to get a response that closes them. Then Fastify closes idle
 * connections, and waits for the requests in progress, up to a limit.
 */
export async function waitForClients(
  server: Server,
  { shutdownTimeout, shutdownGrace }: Settings,
): Promise<void> {
  const limitMs = (shutdownTimeout - shutdownGrace) * DRAIN_TIME_FRACTION;
  closeConnectionsAfter(limitMs, server);
  if (!server.listening) return;
  let isQuiet = false;
  server.on('connection', () => {
    isQuiet = false;
  });
  // The kernel resets the connections in its queue, so stop listening after a turn that accepted none.
  for (let turn = 0; !isQuiet && turn < MAX_ACCEPT_TURNS; turn++) {
    isQuiet = true;
    await setImmediate();
  }
  // The method of HTTP servers would also close accepted connections whose first request is on its way.
  NetServer.prototype.close.call(server);
  await sleep(Math.min(CLOSE_DELAY_MS, limitMs));
}

function closeConnectionsAfter(limitMs: number, server: Server): void {
  setTimeout(() => {
    server.closeAllConnections();
  }, limitMs).unref();
}

/**
 * Ends the process by SIGKILL, after the listeners of its exit, which write the log. An exit alone would wait for
 * SQLite's thread, which may wait for the disk.
 * @param code the exit code of the first process of a container, which the kernel does not kill
 */
function endAtOnce(code: number): void {
  process.once('exit', () => process.kill(process.pid, 'SIGKILL'));
  process.exit(code);
}
