import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { type INestApplication, Logger } from '@nestjs/common';
import type { Settings } from '../settings/environment';
import { Readiness } from '../watch/health';

/*
 * This file depends on undocumented behavior of Node.js 24 and 26: `process.exit` waits for the threads of
 * libuv and for workers. So a name lookup in progress, which nothing can cancel, keeps the process for as
 * long as the resolver tries: 10 seconds and more if the server in /etc/resolv.conf does not respond.
 */

/** How long a closed service waits for other threads before it exits. */
const THREADS_WAIT_MS = 1000;

/**
 * Closes the application on SIGTERM and SIGINT. It reports not ready at once, closes after the grace, and
 * exits with code 0, or 1 if SHUTDOWN_TIMEOUT is exceeded. A second signal ends the process at once, with
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
  let isClosing = false;

  async function close(signal: NodeJS.Signals): Promise<void> {
    logger.log(`Received ${signal}, shutting down.`);
    app.get(Readiness).drain();
    setTimeout(() => {
      console.error(
        `The service did not shut down within ${shutdownTimeout} ms (SHUTDOWN_TIMEOUT).`,
      );
      exitAtOnce(1);
    }, shutdownTimeout).unref();
    await sleep(shutdownGrace);
    await app.close();
    logger.log('Stopped.');
    // The process ends by itself, unless a name lookup hangs or the reader of the log is stalled.
    setTimeout(() => {
      exitAtOnce(0);
    }, THREADS_WAIT_MS).unref();
  }

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (isClosing) exitAtOnce(128 + constants.signals[signal]);
      isClosing = true;
      close(signal).catch(onFailure);
    });
  }
}

/**
 * Exits without waiting for other threads, by replacing this program with one that only exits. It cannot kill
 * itself with a signal, because signals of its own have no effect on the first process of a container.
 */
export function exitAtOnce(code: number): never {
  process.on('exit', () => {
    const args = [process.execPath, '--eval', `process.exit(${code})`];
    if (process.platform !== 'win32') process.execve?.(process.execPath, args, {});
  });
  process.exit(code);
}
