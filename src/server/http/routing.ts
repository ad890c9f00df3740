import type { FastifyInstance } from 'fastify';
import { PlantStoreError } from '../../plants/errors/errors';
import { pathOf } from '../../plants/http/request';
import { isPreflight, preflightHeaders } from './cors';

/** Responds to preflights, and rejects other requests without a route. */
export function addRoutingHook(instance: FastifyInstance, corsOrigins: readonly string[]): void {
  /** The methods of each path. */
  const methods = new Map<string, string[]>();
  instance.addHook('onRoute', ({ url, method }) => {
    methods.set(url, [...(methods.get(url) ?? []), ...[method].flat()]);
  });
  instance.addHook('onRequest', (request, reply, done) => {
    const isHidden = instance.healthServer.hides(request.raw);
    if (!isHidden && !request.is404) {
      done();
      return;
    }
    const Allow = isHidden ? undefined : methods.get(decodeURI(pathOf(request.url)))?.join(', ');
    if (Allow === undefined) done(new PlantStoreError('notFound'));
    else if (isPreflight(request, corsOrigins)) {
      void reply.code(204).headers(preflightHeaders(request, Allow)).send();
    } else done(new PlantStoreError('methodNotAllowed', undefined, { headers: { Allow } }));
  });
}
