import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';

/** Writes one line a request, once it is answered. The query is left out: it may hold anything. */
export function logAccess(instance: FastifyInstance, logger: Logger): void {
  instance.addHook('onResponse', ({ method, url }, reply, done) => {
    logger.info(
      { method, path: url.split('?', 1)[0], status: reply.statusCode, ms: reply.elapsedTime },
      'request',
    );
    done();
  });
}
