import { setImmediate } from 'node:timers/promises';
import { fastify, type FastifyInstance } from 'fastify';
import type { PlantsRepository } from '../../plants';
import { shedLoad } from './load-shedding';

/** Milliseconds: late on average also when a busy machine lets the loop turn once or twice besides. */
const LATE = 2000;

describe('load shedding', () => {
  let instance: FastifyInstance;
  let held: PromiseWithResolvers<string>;
  let reached: PromiseWithResolvers<undefined>;
  beforeEach(async () => {
    // The delay of the event loop is real; when it is looked at, the test says.
    jest.useFakeTimers({
      doNotFake: ['hrtime', 'nextTick', 'queueMicrotask', 'setImmediate', 'clearImmediate'],
    });
    instance = fastify();
    shedLoad(instance, { isFull: () => false } as PlantsRepository, 1);
    held = Promise.withResolvers();
    reached = Promise.withResolvers();
    instance.post('/plants', ({ headers }) => {
      if (!headers.held) return Promise.resolve('done');
      reached.resolve(undefined);
      return held.promise;
    });
    await instance.ready();
  });
  afterEach(async () => {
    held.resolve('done');
    await instance.close();
    jest.useRealTimers();
  });

  const post = async (headers = {}) =>
    (await instance.inject({ method: 'POST', url: '/plants', headers })).statusCode;

  /** Begins with a creation that does not end before it may. */
  async function hold(): Promise<{ status: Promise<number> }> {
    const status = post({ held: 'yes' });
    await reached.promise;
    return { status };
  }

  /** Has the delay be looked at. */
  const look = () => {
    jest.advanceTimersToNextTimer();
  };

  /** Makes the event loop late by some milliseconds between two looks at its delay. */
  async function beLateBy(time: number): Promise<void> {
    look();
    // What is measured is the time from one measuring timer, due by then, to the next.
    for (const pause of [30, time]) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pause);
      // Timers have their turn between two of these.
      await setImmediate();
      await setImmediate();
    }
    look();
  }

  it('refuses creations beyond the limit while the event loop is late, and no others', async () => {
    await beLateBy(LATE);
    const { status } = await hold();

    expect(await post()).toBe(503);

    held.resolve('done');
    expect(await status).toBe(200);
    expect(await post()).toBe(200);
  });

  it('goes by the delay between the last two looks', async () => {
    await hold();

    const statuses: number[] = [];
    for (const time of [100, LATE, 100]) {
      await beLateBy(time);
      statuses.push(await post());
    }

    expect(statuses).toEqual([200, 503, 200]);
  });

  it('takes an event loop that came to no timer between two looks for late', async () => {
    await hold();

    look();
    look();

    expect(await post()).toBe(503);
  });
});
