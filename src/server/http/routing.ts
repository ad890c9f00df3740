import type { FastifyInstance } from 'fastify';
import { MalformedRequestError, PlantStoreError } from '../../plants/errors/errors';
import { pathOf } from '../../plants/http/request';
import { preflightHeaders } from './cors';

const HEALTH_PATHS = ['/health/live', '/health/ready', '/metrics'];

/** Replaces a path that cannot be decoded. There is no route for it. */
const UNDECODABLE_PATH = '/%25';

declare module 'fastify' {
  interface FastifyInstance {
    /** The port of `HEALTH_PORT` once the service listens on it, otherwise NaN. */
    healthPort: number;
  }
}

/** Makes a request target routable. The router runs no hook for some targets. */
export function rewriteUrl({ url = '/' }: { readonly url?: string }): string {
  if (url.startsWith('/') && !url.includes('%')) return url;
  try {
    decodeURI(url.startsWith('/') ? pathOf(url) : url);
  } catch {
    return UNDECODABLE_PATH;
  }
  // The router would find the route of `/plants` for `*plants`.
  return url.startsWith('*') ? `/${url}` : url;
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
    const Allow = isHidden ? undefined : methods.get(decodeURI(pathOf(request.url)))?.join(', ');
    const preflight = Allow && preflightHeaders(request, corsOrigins, Allow);
    if (preflight) void reply.code(204).headers(preflight).send();
    else if (request.url === UNDECODABLE_PATH) {
      done(new MalformedRequestError('The request target is malformed.'));
    } else if (Allow === undefined) done(new PlantStoreError('notFound'));
    else done(new PlantStoreError('methodNotAllowed', undefined, { headers: { Allow } }));
  });
}
