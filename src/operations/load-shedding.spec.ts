import { setTimeout } from 'node:timers/promises';
import { fastify } from 'fastify';
import type { PlantsRepository } from '../plants';
import { shedLoad } from './load-shedding';

describe('load shedding', () => {
  it('refuses creations beyond the limit while the event loop is late, and no others', async () => {
    const instance = fastify();
    const plants = { isFull: () => false } as PlantsRepository;
    shedLoad(instance, plants, 1);
    const held = Promise.withResolvers<string>();
    const reached = Promise.withResolvers<undefined>();
    instance.post('/plants', ({ headers }) => {
      if (!headers.held) return Promise.resolve('done');
      reached.resolve(undefined);
      return held.promise;
    });
    const post = async (headers = {}) =>
      (await instance.inject({ method: 'POST', url: '/plants', headers })).statusCode;
    /** Makes the event loop late, and says what a creation is answered then. */
    const postLate = async (): Promise<number> => {
      let status = 0;
      for (let time = 0; time < 4 && status !== 503; time++) {
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 700);
        await setTimeout(1);
        status = await post();
      }
      return status;
    };

    expect(await postLate()).toBe(200);
    const underWay = post({ held: 'yes' });
    await reached.promise;
    expect(await postLate()).toBe(503);
    held.resolve('done');
    expect(await underWay).toBe(200);
    expect(await postLate()).toBe(200);
    await instance.close();
  }, 20_000);
});
