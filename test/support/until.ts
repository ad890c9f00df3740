import { setTimeout } from 'node:timers/promises';

/** Ends what hangs, in milliseconds: far longer than anything takes on a busy machine, and no test asserts it. */
export const HANG_MS = 300_000;

/** Resolves once a condition holds that nothing announces. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + HANG_MS;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`not within ${HANG_MS} ms: ${String(condition)}`);
    await setTimeout(10);
  }
}
