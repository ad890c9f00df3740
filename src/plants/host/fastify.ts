import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { FastifyInstance, preParsingHookHandler, preValidationHookHandler } from 'fastify';

/**
 * Keeps the parsers of a Fastify host away from the routes that read their bodies themselves: between
 * two hooks of the route its request looks as if it had no body. It depends on what Fastify and Nest do
 * not document:
 *
 * - Nest makes the metadata `__fastify_route_config__` of a controller's method the `config` of its route.
 * - Behind the hooks of `preParsing`, Fastify asks no parser when `request.headers` has neither
 *   `content-type` nor `content-length` nor `transfer-encoding`.
 * - `request.headers = undefined` takes back what was set in their place.
 * - Node.js discards the rest of a body once the response is sent, but not if a stream reads the body.
 *
 * Tested with Fastify 5.11.3 and 5.12.8, on Nest 11.2 and 12.5. `fastify.spec.ts` and
 * `host-bodies.e2e-spec.ts` fail when it changes.
 */
export function skipParsers(instance: FastifyInstance): void {
  instance.addHook('onRoute', (route) => {
    if (!readsOwnBody(route.config)) return;
    route.preParsing = [...[route.preParsing ?? []].flat(), hideBody];
    route.preValidation = [showBody, ...[route.preValidation ?? []].flat()];
  });
}

/** What hooks of a host have put in the place of the body of a request. */
const replacements = new WeakMap<IncomingMessage, Readable>();

/** Where the body of a request comes from. */
export function bodyOf(message: IncomingMessage): Readable {
  return replacements.get(message) ?? message;
}

const NO_BODY = {
  'content-type': undefined,
  'content-length': undefined,
  'transfer-encoding': undefined,
};

const hideBody: preParsingHookHandler = (request, reply, payload, done) => {
  const { raw } = request;
  if (payload !== raw) {
    replacements.set(raw, payload);
    // The body may break off before anybody reads it, and an error without a listener ends the process.
    payload.on('error', () => undefined);
    reply.raw.once('close', () => {
      discardRest(raw, payload);
    });
  }
  request.headers = NO_BODY;
  done(null, payload);
};

/** Discards what nobody has read of a body, so that the next request of the connection can be read. */
function discardRest(message: IncomingMessage, replacement: Readable): void {
  // The replacement need not decode what is discarded, nor does it go on after an error.
  message.unpipe().resume();
  // It may also pull the body, by an iterator for example.
  replacement.resume();
}

const showBody: preValidationHookHandler = (request, _reply, done) => {
  (request as { headers: unknown }).headers = undefined;
  done();
};

const MARK = Symbol('plant-store:reads-body');

/** Whether the route with this `config` reads the body itself: the one that creates plants. */
export function readsOwnBody(config: object | undefined): boolean {
  return MARK in (config ?? {});
}

/** Marks the method of a controller as one that reads the body itself. */
export function markForFastify(method: object): void {
  Reflect.defineMetadata('__fastify_route_config__', { [MARK]: true }, method);
}
