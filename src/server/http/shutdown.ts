import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { type INestApplication, Logger } from '@nestjs/common';
import { PlantsRepository } from '../../plants/plants.repository';
import type { Settings } from '../settings/environment';
import { Readiness } from '../monitoring/health';
import { onSignal } from './signals';

/**
 * Closes the application on SIGTERM, SIGINT and SIGHUP. It reports not ready at once, closes after the grace,
 * and exits with code 0, or 1 if SHUTDOWN_TIMEOUT is exceeded. A second signal ends the process at once, with
 * the exit code of a process that the signal killed.
 *
 * If only a restart can make the store usable again, the application closes without the grace, and exits with code
 * 1, so that its supervisor restarts it.
 *
 * @param onFailure called when closing fails, to end the process
 */
export function handleShutdown(
  app: INestApplication,
  { shutdownGrace, shutdownTimeout }: Settings,
  onFailure: (error: unknown) => void,
): void {
  const logger = new Logger('PlantStore');

  async function close(graceMs: number, exitCode: number): Promise<void> {
    app.get(Readiness).drain();
    setTimeout(() => {
      console.error(
        `The service did not shut down within ${shutdownTimeout} ms (SHUTDOWN_TIMEOUT).`,
      );
      process.exit(1);
    }, shutdownTimeout).unref();
    await sleep(graceMs);
    await app.close();
    logger.log('Stopped.');
    process.exit(exitCode);
  }

  onSignal((first) => {
    onSignal((second) => process.exit(128 + constants.signals[second]));
    logger.log(`Received ${first}, shutting down.`);
    close(shutdownGrace, 0).catch(onFailure);
  });
  // The health of the store has logged the reason.
  const { restartNeeded } = app.get(PlantsRepository);
  void restartNeeded.then(() => close(0, 1)).catch(onFailure);
}
