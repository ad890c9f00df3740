import { OperatorError } from '../errors';

/**
 * Runs work that SIGINT and SIGTERM end cleanly, by aborting the signal given to it. A second SIGINT or
 * SIGTERM ends the process at once. Work that is done when the signal comes counts as done, also while the
 * process ends.
 *
 * @throws OperatorError when it was ended
 */
export async function withInterrupts(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const controller = new AbortController();
  const interrupt = (): void => {
    controller.abort(new OperatorError('Interrupted.'));
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
 * @throws OperatorError when the signal is aborted first
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
