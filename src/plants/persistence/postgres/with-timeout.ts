/** A promise was not settled within its time limit. */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError';

  constructor() {
    super('there was no answer within the time limit');
  }
}

/**
 * Waits for a promise up to a time limit. The work behind the promise is not cancelled.
 *
 * @param signal ends the wait early
 * @throws TimeoutError when the time limit is reached or the signal is aborted
 */
export async function withTimeout<T>(
  work: Promise<T>,
  milliseconds: number,
  signal?: AbortSignal,
): Promise<T> {
  const timeout = Promise.withResolvers<never>();
  const stop = (): void => {
    timeout.reject(new TimeoutError());
  };
  const timer = setTimeout(stop, milliseconds).unref();
  signal?.addEventListener('abort', stop);
  try {
    return await Promise.race([work, timeout.promise]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  }
}
