import type { ServerResponse } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { FastifyInstance } from 'fastify';
import { UnavailableError, type PlantsRepository } from '../plants';

/**
 * Creations that may be in progress while the event loop is late. Not zero: refusals alone can keep
 * the loop late, and a service that refused everything would then answer no creation.
 */
const LATE_LIMIT = 2048;

/** Milliseconds between the timers that measure the delay of the event loop, which includes it. */
const RESOLUTION = 20;

/** The mean delay from which the event loop counts as late: half a second, in nanoseconds. */
const LATE = (RESOLUTION + 500) * 1e6;

/**
 * Refuses creations with 503 while too many plants wait, or while the event loop is late and too many
 * creations are in progress. Neither the token nor the body of a refused creation is read.
 *
 * @returns what to call for each creation; it throws UnavailableError
 */
export function shedLoad(
  instance: FastifyInstance,
  plants: PlantsRepository,
  lateLimit = LATE_LIMIT,
): (response: ServerResponse) => void {
  const isLate = watchEventLoop(instance);
  // Created once, so that thousands of refusals a second do not each capture a stack trace.
  const late = new UnavailableError({ cause: new Error('overloaded: the event loop is delayed') });
  const full = new UnavailableError({
    cause: new Error('overloaded: too many plants are waiting to be stored'),
  });

  let inProgress = 0;
  const release = (): number => inProgress--;
  return (response) => {
    if (plants.isFull()) throw full;
    if (inProgress >= lateLimit && isLate()) throw late;
    inProgress++;
    response.on('close', release);
  };
}

function watchEventLoop(instance: FastifyInstance): () => boolean {
  let isLate = false;
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION });
  delay.enable();
  const sampling = setInterval(() => {
    // Nothing was measured if no timer fired at all.
    isLate = delay.count === 0 || delay.mean > LATE;
    delay.reset();
  }, 250).unref();
  instance.addHook('onClose', (_instance, done) => {
    clearInterval(sampling);
    delay.disable();
    done();
  });
  return () => isLate;
}
