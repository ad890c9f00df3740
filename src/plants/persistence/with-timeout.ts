import { setTimeout } from 'node:timers/promises';

/**
 * Waits for a promise up to a time limit. The work behind the promise is not cancelled.
 *
 * @param signal ends the wait early
 * @throws Error when the time limit is reached
 */
export async function withTimeout<T>(
  work: Promise<T>,
  milliseconds: number,
  signal?: AbortSignal,
): Promise<T> {
  const timeout = setTimeout(milliseconds, undefined, { signal, ref: false }).then(() => {
    throw new Error('there was no response within the time limit');
  });
  return Promise.race([work, timeout]);
}
