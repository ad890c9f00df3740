import { setTimeout } from 'node:timers/promises';

/** The limit that ends a hang, before that of the test, so that the test names what it waited for. No test asserts it. */
export const HANG_MS = 50_000;

/** Polls a condition until it is true. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + HANG_MS;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`not within ${HANG_MS} ms: ${String(condition)}`);
    await setTimeout(10);
  }
}
