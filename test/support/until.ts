import { setTimeout } from 'node:timers/promises';

/** The limit that ends a hang: far longer than any operation takes on a busy machine. No test asserts it. */
export const HANG_MS = 300_000;

/** Polls a condition until it is true. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + HANG_MS;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`not within ${HANG_MS} ms: ${String(condition)}`);
    await setTimeout(10);
  }
}
