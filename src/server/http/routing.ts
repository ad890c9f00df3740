/*
 * Depends on undocumented behavior of Fastify (tested: 5.12.8): it cannot parse a URL without a host, and passes such a
 * target to its option `frameworkErrors` without running a hook.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import createRouter, { type HTTPMethod } from 'find-my-way';
import { MalformedRequestError, PlantStoreError } from '../../plants/errors/errors';
import { pathOf } from '../../plants/http/request';
import { preflightHeaders } from './cors';

declare module 'fastify' {
  interface FastifyInstance {
    /** The port of `HEALTH_PORT` once the service listens on it. */
    healthPort: number | undefined;
  }
  interface FastifyContextConfig {
    /** Whether `HEALTH_PORT` has the route, too. */
    readonly isOnHealthPort?: boolean;
  }
}

/** A URL without a host. */
const UNPARSABLE_TARGET = 'http://';

/**
 * Returns a target as it is if it is a path or an HTTP URL, RFC 9112 sections 3.2.1 and 3.2.2. For any other, such as
 * `*`, Fastify would run only the last of its hooks. This makes it one that Fastify cannot parse.
 */
export function rewriteUrl({ url = '' }: { readonly url?: string }): string {
  if (url.startsWith('/')) return url;
  if (!/^https?:\/\//i.test(url)) return UNPARSABLE_TARGET;
  // An empty path is `/`. Fastify would take the next slash for the path, even in the query.
  return url.replace(/^(https?:\/\/[^/?#]+)(?=[?#])/i, '$1/');
}

/** Returns the error of a target that Fastify cannot parse. */
export function findTargetError(target: string): PlantStoreError {
  // The form of a target for a request about the whole server, RFC 9112 section 3.2.4.
  if (target === '*') return new PlantStoreError('notFound');
  return new MalformedRequestError('The request target is malformed.');
}

/** Returns whether a request came over `HEALTH_PORT`. */
export function isOnHealthPort({ socket, server }: FastifyRequest): boolean {
  const { healthPort } = server;
  // The socket of a client that has disconnected has no port.
  return healthPort !== undefined && socket.localPort === healthPort;
}

/**
 * Responds to preflights, and rejects other requests without a route: with 405 if the path has a route for another
 * method, otherwise with 404. On `HEALTH_PORT`, a route counts only if its `config` has `isOnHealthPort`.
 */
export function addRoutingHook(instance: FastifyInstance, corsOrigins: readonly string[]): void {
  const findMethods = recordMethods(instance);
  instance.addHook('onRequest', (request, reply, done) => {
    const isHidden = isOnHealthPort(request) && request.routeOptions.config.isOnHealthPort !== true;
    if (!isHidden && !request.is404) {
      done();
      return;
    }
    const allowed = isHidden ? [] : findMethods(pathOf(request.url));
    if (allowed.length === 0) {
      done(new PlantStoreError('notFound'));
      return;
    }
    const Allow = allowed.join(', ');
    // A preflight comes first, because OPTIONS has no route of its own.
    const preflight = preflightHeaders(request, corsOrigins, Allow);
    if (preflight) void reply.code(204).headers(preflight).send();
    else done(new PlantStoreError('methodNotAllowed', undefined, { headers: { Allow } }));
  });
}

/**
 * Records the routes of an instance from now on. Returns a function that finds the methods of a path. It uses the router
 * of Fastify, because a path may match several routes, with parameters or without, for different methods.
 */
function recordMethods(instance: FastifyInstance): (path: string) => HTTPMethod[] {
  const router = createRouter();
  const methods = new Set<HTTPMethod>();
  const ignore = (): void => undefined;
  instance.addHook('onRoute', ({ url, method }) => {
    for (const each of [method].flat() as HTTPMethod[]) {
      methods.add(each);
      if (!router.hasRoute(each, url)) router.on(each, url, ignore);
    }
  });
  return (path) => [...methods].filter((each) => router.find(each, path) !== null);
}
