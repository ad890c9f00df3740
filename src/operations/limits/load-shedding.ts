import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { FastifyInstance, onRequestHookHandler } from 'fastify';
import { UnavailableError } from '../../errors';
import type { PlantsRepository } from '../../plants';
import { createPlantRoute } from '../../plants/standalone';

/** Milliseconds that the event loop may be late on average. */
const MAX_DELAY = 500;

/**
 * Creations that may be under way while the event loop is late. Not none: answering refusals alone
 * can make it late, and a service that then refused all would serve nobody for as long as they try.
 */
const LATE_LIMIT = 2048;

/** Milliseconds between looks at the event loop's delay. */
const SAMPLE_INTERVAL = 250;

/** Milliseconds between the timers that measure the delay; part of what is measured. */
const RESOLUTION = 20;

/**
 * Refuses creations with 503 while too many plants wait, or too many are under way for an event loop
 * that is late, before anything is done for them: the token is not looked at, the body not read. To
 * be called before routes are added.
 */
export function shedLoad(
  instance: FastifyInstance,
  plants: PlantsRepository,
  lateLimit = LATE_LIMIT,
): void {
  const isLate = watchEventLoop(instance);
  // Made once: thousands of refusals a second shall not each cost a stack trace.
  const late = new UnavailableError({ cause: new Error('overloaded: the event loop is late') });
  const full = new UnavailableError({ cause: new Error('overloaded: too many plants wait') });

  let underWay = 0;
  const leave = (): void => {
    underWay--;
  };
  const admit: onRequestHookHandler = (_request, reply, done) => {
    if (plants.isFull()) {
      done(full);
    } else if (underWay >= lateLimit && isLate()) {
      done(late);
    } else {
      underWay++;
      reply.raw.on('close', leave);
      done();
    }
  };
  instance.addHook('onRoute', (options) => {
    if (options.url !== createPlantRoute.url || options.method !== createPlantRoute.method) return;
    options.onRequest = [admit, options.onRequest ?? []].flat();
  });
}

function watchEventLoop(instance: FastifyInstance): () => boolean {
  let late = false;
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION });
  delay.enable();
  const sampling = setInterval(() => {
    // In nanoseconds; NaN when not one timer fired in all that time.
    late = !(delay.mean / 1e6 - RESOLUTION <= MAX_DELAY);
    delay.reset();
  }, SAMPLE_INTERVAL).unref();
  instance.addHook('onClose', (_instance, done) => {
    clearInterval(sampling);
    delay.disable();
    done();
  });
  return () => late;
}
