import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { type INestApplication, Logger } from '@nestjs/common';
import type { Settings } from '../settings/environment';
import { Readiness } from '../watch/health';

/**
 * Closes the application on SIGTERM and SIGINT. It reports not ready at once, closes after the grace,
 * and exits with 0, or with 1 if that takes too long. A second signal ends the process at once, with
 * the exit code of a process that the signal killed.
 *
 * @param fail is called when closing fails, to end the process
 */
export function closeOnSignal(
  app: INestApplication,
  { shutdownGrace, shutdownTimeout }: Settings,
  fail: (error: unknown) => void,
): void {
  const logger = new Logger('PlantStore');
  let closing = false;

  async function close(signal: NodeJS.Signals): Promise<void> {
    logger.log(`Stopping, because the process received ${signal}.`);
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
  }

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (closing) process.exit(128 + constants.signals[signal]);
      closing = true;
      close(signal).catch(fail);
    });
  }
}
