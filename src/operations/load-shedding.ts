import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { FastifyInstance, onRequestHookHandler } from 'fastify';
import { UnavailableError } from '../errors';
import type { PlantsRepository } from '../plants';

/** Milliseconds that the event loop may be late on average. */
const MAX_DELAY = 500;

/** Milliseconds between looks at the event loop's delay. */
const SAMPLE_INTERVAL = 250;

/** Milliseconds between the timers that measure the delay; part of what is measured. */
const RESOLUTION = 20;

/**
 * Refuses creations with 503 while the event loop is late or too many plants wait, before anything
 * is done for them: the token is not looked at, the body not read. To be called before routes are
 * added.
 */
export function shedLoad(instance: FastifyInstance, plants: PlantsRepository): void {
  const isLate = watchEventLoop(instance);
  // Made once: thousands of refusals a second shall not each cost a stack trace.
  const late = new UnavailableError({ cause: new Error('overloaded: the event loop is late') });
  const full = new UnavailableError({ cause: new Error('overloaded: too many plants wait') });

  const refuse: onRequestHookHandler = (_request, _reply, done) => {
    done(plants.isFull() ? full : isLate() ? late : undefined);
  };
  instance.addHook('onRoute', (options) => {
    if (options.url !== '/plants' || options.method !== 'POST') return;
    options.onRequest = [refuse, options.onRequest ?? []].flat();
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
