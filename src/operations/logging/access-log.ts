import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { pathOf } from '../../http';
import { IDEMPOTENT_REPLAYED } from '../../plants/standalone';
import { requestFields } from './request-context';

/** Writes one line a request, once it is answered. */
export function logAccess(instance: FastifyInstance, logger: Logger): void {
  instance.addHook('onResponse', (request, reply, done) => {
    const { method, url } = request;
    logger.info(
      {
        ...requestFields(request),
        method,
        path: pathOf(url),
        status: reply.statusCode,
        ms: reply.elapsedTime,
        ...(reply.hasHeader(IDEMPOTENT_REPLAYED) ? { replayed: true } : {}),
      },
      'request',
    );
    done();
  });
}
