import type { ServerResponse } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { FastifyInstance } from 'fastify';
import { UnavailableError } from '../../errors';
import type { PlantsRepository } from '../../plants';

/** The mean delay of the event loop from which it counts as late, in milliseconds. */
const MAX_DELAY = 500;

/**
 * Creations that may be in progress while the event loop is late. Not zero: refusals alone can keep
 * the loop late, and a service that refused everything would then answer no creation.
 */
const LATE_LIMIT = 2048;

/** Milliseconds between two samples of the event loop's delay. */
const SAMPLE_INTERVAL = 250;

/** Milliseconds between the timers that measure the delay. The measured delay includes it. */
const RESOLUTION = 20;

/** The event loop is late if more than this is measured, in nanoseconds as Node measures it. */
const LATE = (RESOLUTION + MAX_DELAY) * 1e6;

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
  const release = (): void => {
    inProgress--;
  };
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
  }, SAMPLE_INTERVAL).unref();
  instance.addHook('onClose', (_instance, done) => {
    clearInterval(sampling);
    delay.disable();
    done();
  });
  return () => isLate;
}
