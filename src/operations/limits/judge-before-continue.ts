import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { BearerGuard } from '../../auth';
import { createPlantRoute } from '../../plants/standalone';

/**
 * Refuses a creation without a good token before its body is asked for, when its client waits for
 * `100 Continue`, RFC 9110 section 10.1.1. The guard runs after the body has been received, and judges
 * the token of every creation, these included. Call it before routes are added.
 */
export function judgeBeforeContinue(instance: FastifyInstance, guard: BearerGuard): void {
  async function judge(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    try {
      await guard.authenticate(request.raw);
    } catch (error) {
      // The client may or may not send the body now, so nothing can follow on this connection.
      reply.header('Connection', 'close');
      throw error;
    }
  }

  instance.addHook('onRoute', (options) => {
    if (options.url !== createPlantRoute.url || options.method !== createPlantRoute.method) return;
    options.onRequest = [
      options.onRequest ?? [],
      (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => {
        if (request.headers.expect === undefined) {
          done();
        } else {
          judge(request, reply).then(() => {
            done();
          }, done);
        }
      },
    ].flat();
  });
}
