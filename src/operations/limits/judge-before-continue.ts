import type { FastifyInstance, onRequestHookHandler } from 'fastify';
import type { BearerGuard } from '../../auth';
import { createPlantRoute } from '../../plants';

/**
 * Refuses a creation without a valid token before its body is requested, when its client waits for
 * `100 Continue`, RFC 9110 section 10.1.1. The guard runs after the body has been received, and judges
 * the token of every creation, these included. Call it before routes are added.
 */
export function judgeBeforeContinue(instance: FastifyInstance, guard: BearerGuard): void {
  const judge: onRequestHookHandler = (request, reply, done) => {
    const refuse = (error: Error): void => {
      // The client may or may not send the body now, so nothing can follow on this connection.
      reply.header('Connection', 'close');
      done(error);
    };
    try {
      const caller = guard.authenticate(request.raw);
      if (!(caller instanceof Promise)) done();
      else {
        caller.then(() => {
          done();
        }, refuse);
      }
    } catch (error) {
      refuse(error as Error);
    }
  };
  const judgeWaiting: onRequestHookHandler = function (request, reply, done) {
    if (request.headers.expect === undefined) done();
    else judge.call(this, request, reply, done);
  };

  instance.addHook('onRoute', (options) => {
    if (options.url !== createPlantRoute.url || options.method !== createPlantRoute.method) return;
    options.onRequest = [options.onRequest ?? [], judgeWaiting].flat();
  });
}
