import { OperatorError } from '../plants/errors/operator.error';

/**
 * Runs work, and aborts the signal passed to it on SIGINT or SIGTERM, so that the work can clean up. A second
 * SIGINT or SIGTERM ends the process at once.
 *
 * @throws OperatorError when the work was interrupted
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
