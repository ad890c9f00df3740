import { OperatorError } from '../plants/program';

/**
 * Runs work that SIGINT and SIGTERM end cleanly, by aborting the signal given to it. A second SIGINT or
 * SIGTERM ends the process at once. Work that is done when the signal comes counts as done. The process
 * ends with the work.
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
  await new Promise((resolve) => process.stdout.write('', resolve));
  // Left to itself, Node.js gives up its handlers some milliseconds before it ends, and a signal would
  // then fail work that is done.
  process.exit();
}
