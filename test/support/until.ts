import { setTimeout } from 'node:timers/promises';

/** The limit that ends a hang, before that of the test, so that the test names what it waited for. No test asserts it. */
export const HANG_MS = 50_000;

/** Polls a condition until it is true. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  limitMs = HANG_MS,
): Promise<void> {
  const end = Date.now() + limitMs;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`not within ${limitMs} ms: ${String(condition)}`);
    await setTimeout(10);
  }
}
