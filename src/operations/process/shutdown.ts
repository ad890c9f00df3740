import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { INestApplication } from '@nestjs/common';
import { Readiness } from '../health';
import { Tracing } from '../tracing';

/** The share of the shutdown time that spans get to reach their collector, once all is closed. */
const TRACING_SHARE = 0.1;

/** How the service ends. Durations are in milliseconds. */
export interface ShutdownOptions {
  /** How long it says that it is not ready, and serves on, before it begins to close. */
  readonly shutdownGrace: number;
  /** All the time that ending may take, the grace included. */
  readonly shutdownTimeout: number;
}

/**
 * Closes the application on SIGTERM and SIGINT: not ready at once, closed after the grace, exit
 * code 0, or 1 when that takes too long. A second signal ends the process at once, with the code of
 * one that it killed.
 *
 * @param fail ends the process when closing fails
 */
export function closeOnSignal(
  app: INestApplication,
  { shutdownGrace, shutdownTimeout }: ShutdownOptions,
  fail: (error: unknown) => void,
): void {
  let closing = false;

  async function close(): Promise<void> {
    app.get(Readiness).drain();
    setTimeout(() => {
      console.error(`Not closed within ${shutdownTimeout} ms.`);
      process.exit(1);
    }, shutdownTimeout).unref();
    await sleep(shutdownGrace);
    await app.close();
    app.get(Tracing).stop(shutdownTimeout * TRACING_SHARE);
  }

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (closing) process.exit(128 + constants.signals[signal]);
      closing = true;
      close().catch(fail);
    });
  }
}
