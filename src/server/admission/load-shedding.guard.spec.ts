import { EventEmitter } from 'node:events';
import type { ExecutionContext } from '@nestjs/common';
import { UnavailableError } from '../../plants/errors/errors';
import type { PlantsRepository } from '../../plants/plants.repository';
import { LoadSheddingGuard } from './load-shedding.guard';

/** How many creations may be in progress while the event loop is late. */
const LIMIT = 2048;

it('load shedding refuses only creations beyond the limit, and only while the event loop is late', () => {
  // The event loop is really late. The test decides when the service looks at it.
  jest.useFakeTimers({ doNotFake: ['performance'] });
  const guard = new LoadSheddingGuard({ isFull: () => false } as PlantsRepository);
  const enter = (response = new EventEmitter()): boolean =>
    guard.canActivate({
      getClass: () => Object,
      switchToHttp: () => ({ getResponse: () => ({ raw: response }) }),
    } as unknown as ExecutionContext);
  const first = new EventEmitter();
  enter(first);
  for (let count = 1; count < LIMIT; count++) enter();

  const isAdmitted: boolean[] = [];
  for (const time of [0, 1000, 0, 1000]) {
    // Blocks the event loop between two looks at it.
    jest.advanceTimersToNextTimer();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, time);
    jest.advanceTimersToNextTimer();
    try {
      isAdmitted.push(enter());
    } catch (error) {
      isAdmitted.push(!(error instanceof UnavailableError));
    }
  }
  expect(isAdmitted).toEqual([true, false, true, false]);

  // Two more than the limit are in progress.
  for (let count = 0; count < 3; count++) first.emit('close');
  expect(enter()).toBe(true);
  guard.onApplicationShutdown();
  jest.useRealTimers();
});
