import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { FastifyInstance, preParsingHookHandler } from 'fastify';

/**
 * Keeps the parsers of a Fastify host away from the routes that read their bodies themselves: a hook of
 * the route gives each request a media type of its own, and the parser of that media type reads
 * nothing. It depends on what Fastify and Nest do not document:
 *
 * - Nest makes the metadata `__fastify_route_config__` of a controller's method the `config` of its route.
 * - Fastify chooses the parser by `request.raw.headers`, and does so after the hooks of `preParsing`.
 *
 * Tried with Fastify 5.11.3 and 5.12.8, on Nest 11.2 and 12.5. `fastify.spec.ts` fails when it changes.
 */
export function prepareFastify(instance: FastifyInstance): void {
  // Clients cannot guess it, so the parser gets no request of another route.
  const mediaType = `application/x-unread-${crypto.randomUUID()}`;
  /** The media types that are hidden, until the parser has been chosen. */
  const hidden = new WeakMap<IncomingMessage, string | undefined>();

  const hideMediaType: preParsingHookHandler = ({ raw }, _reply, payload, done) => {
    hidden.set(raw, raw.headers['content-type']);
    raw.headers['content-type'] = mediaType;
    done(null, payload);
  };
  instance.addHook('onRoute', (route) => {
    if (!(MARK in (route.config ?? {}))) return;
    route.preParsing = [hideMediaType, ...[route.preParsing ?? []].flat()];
    if (instance.hasContentTypeParser(mediaType)) return;
    instance.addContentTypeParser(mediaType, ({ raw }, payload, done) => {
      sources.set(raw, payload);
      raw.headers['content-type'] = hidden.get(raw);
      if (raw.headers['content-type'] === undefined) delete raw.headers['content-type'];
      done(null);
    });
  });
}

/** What the hooks of a host have put in the place of requests as the source of their bodies. */
const sources = new WeakMap<IncomingMessage, Readable>();

/** The stream that the body of a request comes from. */
export function bodySourceOf(message: IncomingMessage): Readable {
  return sources.get(message) ?? message;
}

const MARK = Symbol('plant-store:reads-body');

/** Marks the method of a controller as one that reads the body itself. */
export function markForFastify(method: object): void {
  Reflect.defineMetadata('__fastify_route_config__', { [MARK]: true }, method);
}
