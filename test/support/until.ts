import { setTimeout } from 'node:timers/promises';

/** Waits until a condition holds, for what no event announces. The test's own time-out is the limit. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await setTimeout(10);
}
