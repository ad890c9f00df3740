import type { FastifyInstance } from 'fastify';
import type { BearerGuard } from '../../plants/program';
import { isCreation } from '../edge/request-rules';

/**
 * Asks a client that waits for `100 Continue` for its body, RFC 9110 section 10.1.1: only for that of a
 * creation, and only once the token is accepted. Any other answer to such a client closes the
 * connection, because the client may or may not send the body behind it.
 */
export function askForBodies(instance: FastifyInstance, guard: BearerGuard): void {
  instance.addHook('onRequest', (request, reply, done) => {
    if (request.headers.expect === undefined || !isCreation(request.raw)) {
      done();
      return;
    }
    const proceed = (): void => {
      reply.removeHeader('Connection').raw.writeContinue();
      done();
    };
    guard.authenticate(request).then(proceed, done);
  });
}
