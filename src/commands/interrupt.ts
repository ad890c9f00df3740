/** A signal ended a command before it was done. */
export class InterruptedError extends Error {
  override readonly name = 'InterruptedError';

  constructor() {
    super('Interrupted.');
  }
}

/**
 * Runs work that SIGINT and SIGTERM end cleanly, by aborting the signal given to it. A second SIGINT or
 * SIGTERM ends the process at once. Work that is done when the signal comes counts as done, also while the
 * process ends.
 *
 * @throws InterruptedError when it was ended
 */
export async function withInterrupts(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const controller = new AbortController();
  const interrupt = (): void => {
    controller.abort(new InterruptedError());
  };
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  try {
    await work(controller.signal);
  } catch (error) {
    controller.signal.throwIfAborted();
    throw error;
  }
}

/**
 * Waits for a promise, or until the signal is aborted.
 *
 * @throws InterruptedError when the signal is aborted first
 */
export async function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => {
    aborted.reject(signal.reason as Error);
  };
  signal.addEventListener('abort', abort);
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
