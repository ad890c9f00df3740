import { setTimeout } from 'node:timers/promises';

/**
 * Resolves once a condition holds that nothing announces.
 *
 * @param limit milliseconds after which it counts as never: long, because machines may be busy
 */
export async function until(
  condition: () => boolean | Promise<boolean>,
  limit = 60_000,
): Promise<void> {
  const end = Date.now() + limit;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`not within ${limit} ms: ${String(condition)}`);
    await setTimeout(10);
  }
}
