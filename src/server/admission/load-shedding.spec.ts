import { fastify, type FastifyInstance } from 'fastify';
import type { PlantsRepository } from '../../plants';
import { BodyMemory } from './body-memory';
import { shedLoad } from './load-shedding';

let instance: FastifyInstance;
const held = Promise.withResolvers<string>();
const reached = Promise.withResolvers<undefined>();
beforeEach(async () => {
  // The event loop is really late. The test decides when the service looks at it.
  jest.useFakeTimers({
    doNotFake: ['performance', 'nextTick', 'queueMicrotask', 'setImmediate', 'setTimeout'],
  });
  instance = fastify();
  shedLoad(instance, { isFull: () => false } as PlantsRepository, new BodyMemory(1024), 1);
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

it('load shedding refuses only creations beyond the limit, and only while the event loop is late', async () => {
  const status = post({ held: 'yes' });
  await reached.promise;

  const statuses: number[] = [];
  for (const time of [0, 1000, 0, 1000]) {
    // Blocks the event loop between two looks at it.
    jest.advanceTimersToNextTimer();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, time);
    jest.advanceTimersToNextTimer();
    statuses.push(await post());
  }

  expect(statuses).toEqual([200, 503, 200, 503]);
  held.resolve('done');
  expect(await status).toBe(200);
  expect(await post()).toBe(200);
});
