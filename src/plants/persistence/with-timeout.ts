/**
 * Waits for a promise up to a time limit. The work behind the promise is not cancelled.
 *
 * @param signal ends the wait early, with its reason
 * @throws Error when the time limit is reached
 */
export async function withTimeout<T>(
  work: Promise<T>,
  milliseconds: number,
  signal?: AbortSignal,
): Promise<T> {
  const { promise: ended, reject } = Promise.withResolvers<never>();
  const timeout = new Error('there was no answer within the time limit');
  const timer = setTimeout(reject, milliseconds, timeout).unref();
  const onAbort = (): void => {
    reject(signal?.reason);
  };
  if (signal?.aborted) onAbort();
  signal?.addEventListener('abort', onAbort);
  try {
    return await Promise.race([work, ended]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
  }
}
