import type { FastifyInstance } from 'fastify';
import { MalformedRequestError, PlantStoreError } from '../../plants/errors/errors';
import { pathOf } from '../../plants/http/request';
import { preflightHeaders } from './cors';

const HEALTH_PATHS = ['/health/live', '/health/ready', '/metrics'];

declare module 'fastify' {
  interface FastifyInstance {
    /** The port of `HEALTH_PORT` once the service listens on it, otherwise NaN. */
    healthPort: number;
  }
}

/** No URL: it has no host. Fastify passes it to its option `frameworkErrors`. */
const UNPARSABLE_TARGET = 'http://';

/**
 * Returns a target as it is if it is a path or an HTTP URL, RFC 9112 sections 3.2.1 and 3.2.2. For any other, such as
 * `*`, Fastify would run only the last of its hooks. This makes it one that Fastify cannot parse.
 */
export function rewriteUrl({ url = '' }: { readonly url?: string }): string {
  return url.startsWith('/') || /^https?:\/\//i.test(url) ? url : UNPARSABLE_TARGET;
}

/** Returns the error of a target that Fastify cannot parse. */
export function findTargetError(target: string): PlantStoreError {
  // The form of a target for a request about the whole server, RFC 9112 section 3.2.4.
  if (target === '*') return new PlantStoreError('notFound');
  return new MalformedRequestError('The request target is malformed.');
}

/** Responds to preflights, and rejects other requests without a route. */
export function addRoutingHook(instance: FastifyInstance, corsOrigins: readonly string[]): void {
  const methods = new Map<string, string[]>();
  instance.addHook('onRoute', ({ url, method }) => {
    methods.set(url, [...(methods.get(url) ?? []), ...[method].flat()]);
  });
  instance.addHook('onRequest', (request, reply, done) => {
    const isHidden =
      request.socket.localPort === instance.healthPort &&
      !HEALTH_PATHS.includes(String(request.routeOptions.url));
    if (!isHidden && !request.is404) {
      done();
      return;
    }
    // The router has decoded the path before.
    const Allow = isHidden ? undefined : methods.get(decodeURI(pathOf(request.url)))?.join(', ');
    const preflight = Allow && preflightHeaders(request, corsOrigins, Allow);
    if (preflight) void reply.code(204).headers(preflight).send();
    else if (Allow === undefined) done(new PlantStoreError('notFound'));
    else done(new PlantStoreError('methodNotAllowed', undefined, { headers: { Allow } }));
  });
}
