import type { FastifyInstance, FastifyReply } from 'fastify';
import { UnavailableError } from '../../errors';
import { securityHeaders } from '../../http';
import type { Readiness } from './readiness';

const OK = JSON.stringify({ status: 'ok' });

/**
 * Serves `GET /health/live` and `GET /health/ready`, public and without detail. They are routes of
 * Fastify, to which Nest's guards do not apply. They answer from memory, so frequent probes are cheap.
 */
export function serveHealth(instance: FastifyInstance, readiness: Readiness): void {
  const unavailable = new UnavailableError();

  instance.get('/health/live', (_request, reply) => answer(reply, OK));
  instance.get('/health/ready', (_request, reply) => {
    if (readiness.isReady()) return answer(reply, OK);
    void reply
      .code(unavailable.getStatus())
      .headers({ ...securityHeaders, ...unavailable.headers });
    return answer(reply, JSON.stringify(unavailable.body));
  });
}

function answer(reply: FastifyReply, body: string): FastifyReply {
  return reply
    .header('Cache-Control', 'no-store')
    .type('application/json; charset=utf-8')
    .send(body);
}
