import { setImmediate } from 'node:timers/promises';

/** What of Jest's fake timers stays real: all but the clocks and the timers of the code under test. */
// prettier-ignore
const REAL = [
  'hrtime', 'nextTick', 'queueMicrotask', 'setImmediate', 'clearImmediate',
  'setInterval', 'clearInterval',
] as const;

/** Stops the clocks, so that a test can say what the time is. */
export function stopClock(): void {
  jest.useFakeTimers({ doNotFake: [...REAL] });
}

/** Lets time pass, in milliseconds. */
export function pass(time: number): void {
  jest.advanceTimersByTime(time);
}

export function releaseClock(): void {
  jest.useRealTimers();
}

/** Waits for the end of a turn of the event loop, which no stopped clock holds up. */
export async function turn(): Promise<void> {
  await setImmediate();
  await setImmediate();
}
