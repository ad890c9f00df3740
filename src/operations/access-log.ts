import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { requestFields } from './request-context';

/** Writes one line a request, once it is answered. The query is left out: it may hold anything. */
export function logAccess(instance: FastifyInstance, logger: Logger): void {
  instance.addHook('onResponse', (request, reply, done) => {
    const { method, url } = request;
    logger.info(
      {
        ...requestFields(request),
        method,
        path: url.split('?', 1)[0],
        status: reply.statusCode,
        ms: reply.elapsedTime,
      },
      'request',
    );
    done();
  });
}
