import { OperatorError } from '../plants/errors/operator.error';

/**
 * Runs work that SIGINT and SIGTERM end cleanly, by aborting the signal given to it. A second SIGINT or
 * SIGTERM ends the process at once.
 *
 * @throws OperatorError when it was ended
 */
export async function withInterrupts(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const controller = new AbortController();
  const interrupt = (): void => {
    controller.abort(new OperatorError('Interrupted.'));
  };
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  await work(controller.signal).catch((error: unknown) => {
    controller.signal.throwIfAborted();
    throw error;
  });
}
