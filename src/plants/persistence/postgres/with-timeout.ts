/** What was waited for has not come. */
export class LateError extends Error {
  override readonly name = 'LateError';

  constructor() {
    super('no answer in time');
  }
}

/**
 * What a promise resolves to, if it does so in time; what it waits for goes on all the same.
 *
 * @param signal ends the waiting before
 * @throws LateError when it does not
 */
export async function inTime<T>(
  work: Promise<T>,
  milliseconds: number,
  signal?: AbortSignal,
): Promise<T> {
  const late = Promise.withResolvers<never>();
  const giveUp = (): void => {
    late.reject(new LateError());
  };
  const clock = setTimeout(giveUp, milliseconds).unref();
  signal?.addEventListener('abort', giveUp);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(clock);
    signal?.removeEventListener('abort', giveUp);
  }
}
