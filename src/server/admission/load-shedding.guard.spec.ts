import { EventEmitter } from 'node:events';
import type { ExecutionContext } from '@nestjs/common';
import { UnavailableError } from '../../plants/errors/errors';
import type { PlantsRepository } from '../../plants/plants.repository';
import { LoadSheddingGuard } from './load-shedding.guard';

/** The number of create requests that may be in progress while the event loop is delayed. */
const MAX_REQUESTS_WHILE_DELAYED = 2048;

it('LoadSheddingGuard rejects only create requests beyond the limit, and only while the event loop is delayed', () => {
  // The event loop is really delayed. The test decides when the guard measures the delay.
  jest.useFakeTimers({ doNotFake: ['performance'] });
  const guard = new LoadSheddingGuard({ isFull: () => false } as PlantsRepository);
  const enter = (response = new EventEmitter()): boolean =>
    guard.canActivate({
      getClass: () => Object,
      switchToHttp: () => ({ getResponse: () => ({ raw: response }) }),
    } as unknown as ExecutionContext);
  const first = new EventEmitter();
  enter(first);
  for (let count = 1; count < MAX_REQUESTS_WHILE_DELAYED; count++) enter();

  const isAdmitted: boolean[] = [];
  for (const blockedMs of [0, 1000, 0, 1000]) {
    // Blocks the event loop between two measurements.
    jest.advanceTimersToNextTimer();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, blockedMs);
    jest.advanceTimersToNextTimer();
    try {
      isAdmitted.push(enter());
    } catch (error) {
      isAdmitted.push(!(error instanceof UnavailableError));
    }
  }
  expect(isAdmitted).toEqual([true, false, true, false]);

  // The number of requests in progress is two above the limit.
  for (let count = 0; count < 3; count++) first.emit('close');
  expect(enter()).toBe(true);
  guard.onApplicationShutdown();
  jest.useRealTimers();
});
