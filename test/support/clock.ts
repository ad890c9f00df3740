import { setImmediate } from 'node:timers/promises';

/** The functions that Jest does not fake: all except the clocks and the timers of the code under test. */
const REAL_FUNCTIONS = [
  'hrtime',
  'nextTick',
  'queueMicrotask',
  'setImmediate',
  'clearImmediate',
] as const;

/** Stops the clocks. Then time passes only in {@link advanceClock}. */
export function stopClock(): void {
  jest.useFakeTimers({ doNotFake: [...REAL_FUNCTIONS] });
}

/** Advances the stopped clocks and runs the timers that become due. */
export function advanceClock(milliseconds: number): void {
  jest.advanceTimersByTime(milliseconds);
}

export function restoreClock(): void {
  jest.useRealTimers();
}

/** Waits for two turns of the event loop. Works while the clocks are stopped. */
export async function waitForTurn(): Promise<void> {
  await setImmediate();
  await setImmediate();
}
