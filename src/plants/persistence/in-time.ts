/**
 * What a promise resolves to, if it does so in time; what it waits for goes on all the same.
 *
 * @throws Error when it does not
 */
export async function inTime<T>(work: Promise<T>, milliseconds: number): Promise<T> {
  const late = Promise.withResolvers<never>();
  const clock = setTimeout(() => {
    late.reject(new Error('no answer in time'));
  }, milliseconds);
  clock.unref();
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(clock);
  }
}
