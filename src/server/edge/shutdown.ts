import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { type INestApplication, Logger } from '@nestjs/common';
import type { Settings } from '../settings/environment';
import { Readiness } from '../watch/health';
import { onSignal } from './signals';

/**
 * Closes the application on SIGTERM, SIGINT and SIGHUP. It reports not ready at once, closes after the grace,
 * and exits with code 0, or 1 if SHUTDOWN_TIMEOUT is exceeded. A second signal ends the process at once, with
 * the exit code of a process that the signal killed.
 *
 * @param onFailure called when closing fails, to end the process
 */
export function closeOnSignal(
  app: INestApplication,
  { shutdownGrace, shutdownTimeout }: Settings,
  onFailure: (error: unknown) => void,
): void {
  const logger = new Logger('PlantStore');

  async function close(signal: NodeJS.Signals): Promise<void> {
    logger.log(`Received ${signal}, shutting down.`);
    app.get(Readiness).drain();
    setTimeout(() => {
      console.error(
        `The service did not shut down within ${shutdownTimeout} ms (SHUTDOWN_TIMEOUT).`,
      );
      process.exit(1);
    }, shutdownTimeout).unref();
    await sleep(shutdownGrace);
    await app.close();
    logger.log('Stopped.');
    process.exit(0);
  }

  onSignal((first) => {
    onSignal((second) => process.exit(128 + constants.signals[second]));
    close(first).catch(onFailure);
  });
}
