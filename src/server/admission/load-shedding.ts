import type { FastifyInstance } from 'fastify';
import { UnavailableError, type PlantsRepository } from '../../plants';
import { BodyMemory } from './body-memory';
import { isCreation } from '../edge/request-rules';

/**
 * Creations that may be in progress while the event loop is late. Not zero: refusals alone can keep
 * the loop late, and a service that refused everything would then answer no creation.
 */
const LATE_LIMIT = 2048;

/** Milliseconds between two looks at the event loop. */
const INTERVAL = 20;

/** How late a look must be for the event loop to count as late, in milliseconds. */
const LATE = 500;

/**
 * Refuses creations with 503 while too many plants wait, while the event loop is late and too many
 * creations are in progress, or while their bodies use too much memory. Neither the token nor the body
 * of a refused creation is read.
 *
 * @param bodies the memory for bodies
 */
export function shedLoad(
  instance: FastifyInstance,
  plants: PlantsRepository,
  bodies: BodyMemory,
  lateLimit = LATE_LIMIT,
): void {
  const isLate = watchEventLoop(instance);
  // Created once, so that thousands of refusals a second do not each capture a stack trace.
  const late = new UnavailableError({ cause: new Error('overloaded: the event loop is delayed') });
  const full = new UnavailableError({
    cause: new Error('overloaded: too many plants are waiting to be stored'),
  });

  let inProgress = 0;
  const release = (): number => inProgress--;
  instance.addHook('onRequest', ({ raw: request }, { raw: response }, done) => {
    if (isCreation(request)) {
      if (plants.isFull()) throw full;
      if (inProgress >= lateLimit && isLate()) throw late;
      bodies.reserve(request, response);
      inProgress++;
      response.on('close', release);
    }
    done();
  });
}

function watchEventLoop(instance: FastifyInstance): () => boolean {
  let isLate = false;
  let lookedAt = performance.now();
  const looking = setInterval(() => {
    const now = performance.now();
    isLate = now - lookedAt > INTERVAL + LATE;
    lookedAt = now;
  }, INTERVAL).unref();
  instance.addHook('onClose', (_instance, done) => {
    clearInterval(looking);
    done();
  });
  return () => isLate;
}
