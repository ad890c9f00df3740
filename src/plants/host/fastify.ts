import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { FastifyInstance, preParsingHookHandler, preValidationHookHandler } from 'fastify';

/**
 * Makes the parsers of a Fastify host skip the routes that read their own bodies: two hooks of the route make
 * the request look as if it had no body while the parsers run. It depends on undocumented behaviour of
 * Fastify, Nest and Node.js:
 *
 * - Nest copies the metadata `__fastify_route_config__` of a controller's method to the `config` of its route.
 * - After the `preParsing` hooks, Fastify calls no parser if `request.headers` has neither `content-type` nor
 *   `content-length` nor `transfer-encoding`.
 * - Setting `request.headers = undefined` restores the original headers.
 * - Node.js discards the rest of a body once the response is sent, but not if a stream reads the body.
 *
 * Tested with Fastify 5.11.3 and 5.12.8, on Nest 11.2 and 12.5. `fastify.spec.ts` and
 * `host-bodies.e2e-spec.ts` fail if this behaviour changes.
 */
export function skipParsers(instance: FastifyInstance): void {
  instance.addHook('onRoute', (route) => {
    if (!readsOwnBody(route.config)) return;
    route.preParsing = [...[route.preParsing ?? []].flat(), hideBody];
    route.preValidation = [showBody, ...[route.preValidation ?? []].flat()];
  });
}

/** Streams with which hooks of a host replaced the bodies of requests. */
const replacements = new WeakMap<IncomingMessage, Readable>();

/** Returns the stream that delivers the body of a request. */
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
    // The body may fail before it is read, and an error event without a listener ends the process.
    payload.on('error', () => undefined);
    reply.raw.once('close', () => {
      discardRest(raw, payload);
    });
  }
  request.headers = NO_BODY;
  done(null, payload);
};

/** Discards the unread rest of a body, so that the next request of the connection can be read. */
function discardRest(message: IncomingMessage, replacement: Readable): void {
  // Unpipe first: the replacement need not decode what is discarded, and stops reading after an error.
  message.unpipe().resume();
  // The replacement may also pull the body itself, for example with an iterator.
  replacement.resume();
}

const showBody: preValidationHookHandler = (request, _reply, done) => {
  (request as { headers: unknown }).headers = undefined;
  done();
};

const MARK = Symbol('plant-store:reads-body');

/** Whether the route with this `config` reads the body itself, as the route that creates plants does. */
export function readsOwnBody(config: object | undefined): boolean {
  return MARK in (config ?? {});
}

/** Marks the method of a controller as one that reads the body itself, for {@link skipParsers}. */
export function markForFastify(method: object): void {
  Reflect.defineMetadata('__fastify_route_config__', { [MARK]: true }, method);
}
