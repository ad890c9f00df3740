import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyRequest, preParsingHookHandler } from 'fastify';
import { fieldValues } from '../http/request';
import { readBody } from './read-body';

/**
 * Keeps the parsers of a Fastify host away from the routes that read their bodies themselves: a hook of
 * the route gives each request a media type of its own, and the parser of that media type makes the
 * bytes the `body`, or the error for which they cannot be read. It depends on what Fastify and Nest do
 * not document:
 *
 * - Nest makes the metadata `__fastify_route_config__` of a controller's method the `config` of its route.
 * - Fastify chooses the parser by `request.raw.headers`, and does so after the hooks of `preParsing`.
 *
 * Tried with Fastify 5.11.3 and 5.12.8, on Nest 11.2 and 12.5. `fastify.spec.ts` fails when it changes.
 *
 * @param limit the most bytes of a body
 */
export function replaceParser(instance: FastifyInstance, limit: number): void {
  // Clients cannot guess it, so the parser gets no request of another route.
  const mediaType = `application/x-own-${crypto.randomUUID()}`;
  const hideMediaType: preParsingHookHandler = ({ raw }, _reply, payload, done) => {
    raw.headers['content-type'] = mediaType;
    done(null, payload);
  };
  instance.addHook('onRoute', (route) => {
    if (!(MARK in (route.config ?? {}))) return;
    route.preParsing = [hideMediaType, ...[route.preParsing ?? []].flat()];
    if (instance.hasContentTypeParser(mediaType)) return;
    instance.addContentTypeParser(
      mediaType,
      ({ raw }: FastifyRequest, payload: IncomingMessage) => {
        [raw.headers['content-type']] = fieldValues(raw, 'content-type');
        if (raw.headers['content-type'] === undefined) delete raw.headers['content-type'];
        // The route answers an error, behind its guard. Fastify would do so at once.
        return readBody(raw, limit, payload).catch((error: unknown) => error);
      },
    );
  });
}

const MARK = Symbol('plant-store:reads-body');

/** Marks the method of a controller as one that reads the body itself. */
export function markForFastify(method: object): void {
  Reflect.defineMetadata('__fastify_route_config__', { [MARK]: true }, method);
}
