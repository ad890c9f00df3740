import { setImmediate } from 'node:timers/promises';
import { fastify, type FastifyInstance } from 'fastify';
import type { PlantsRepository } from '../plants';
import { shedLoad } from './load-shedding';

/** Milliseconds. Long enough for a late mean even if a busy machine adds a few turns of the loop. */
const LATE = 2000;

describe('load shedding', () => {
  let instance: FastifyInstance;
  let held: PromiseWithResolvers<string>;
  let reached: PromiseWithResolvers<undefined>;
  beforeEach(async () => {
    // The delay of the event loop is real; the test decides when it is sampled.
    jest.useFakeTimers({
      doNotFake: ['hrtime', 'nextTick', 'queueMicrotask', 'setImmediate', 'clearImmediate'],
    });
    instance = fastify();
    const admit = shedLoad(instance, { isFull: () => false } as PlantsRepository, 1);
    instance.addHook('onRequest', (_request, reply, done) => {
      admit(reply.raw);
      done();
    });
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

  /** Starts a creation that ends only when `held` is resolved. */
  async function hold(): Promise<{ status: Promise<number> }> {
    const status = post({ held: 'yes' });
    await reached.promise;
    return { status };
  }

  /** Samples the delay. */
  const sample = () => {
    jest.advanceTimersToNextTimer();
  };

  /** Blocks the event loop for some milliseconds between two samples of its delay. */
  async function blockEventLoop(time: number): Promise<void> {
    sample();
    // The delay is measured from one timer to the next; the first pause makes one due.
    for (const pause of [30, time]) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pause);
      // Timers run between two of these.
      await setImmediate();
      await setImmediate();
    }
    sample();
  }

  it('refuses only creations beyond the limit, and only while the event loop is late', async () => {
    await blockEventLoop(LATE);
    const { status } = await hold();

    expect(await post()).toBe(503);

    held.resolve('done');
    expect(await status).toBe(200);
    expect(await post()).toBe(200);
  });

  it('uses the delay between the last two samples', async () => {
    await hold();

    const statuses: number[] = [];
    for (const time of [100, LATE, 100]) {
      await blockEventLoop(time);
      statuses.push(await post());
    }

    expect(statuses).toEqual([200, 503, 200]);
  });

  it('counts an event loop that ran no timer between two samples as late', async () => {
    await hold();

    sample();
    sample();

    expect(await post()).toBe(503);
  });
});
