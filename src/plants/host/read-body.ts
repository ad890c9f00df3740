import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { HttpAdapterHost } from '@nestjs/core';
import { PlantStoreError } from '../errors';
import { type HostRequest, nodeRequest } from './node-request';

/**
 * Routes that read the bytes of their requests themselves, in a host whose parsers would otherwise read
 * them first, round numbers and answer malformed JSON. No other route of the host notices.
 *
 * - On Fastify a hook of the route gives the request a media type of its own, and the parser of
 *   that media type leaves the body unread.
 * - On Express a function in front of the host's parsers makes them skip the request.
 */

/** Marks the handler of such a route. Nest copies the metadata of a method to the route's handler. */
const READS_BODY = Symbol('plant-store:reads-body');

/** Where Nest's Fastify adapter looks for the `config` of a route. */
const FASTIFY_ROUTE_CONFIG = '__fastify_route_config__';

/** Declares that the route reads the body with {@link readBody}. */
export function ReadsBody(): MethodDecorator {
  return (_target, _name, descriptor: PropertyDescriptor) => {
    const method = descriptor.value as object;
    Reflect.defineMetadata(READS_BODY, true, method);
    Reflect.defineMetadata(FASTIFY_ROUTE_CONFIG, { [READS_BODY]: true }, method);
  };
}

/** What hooks of Fastify have put in the place of a request as the source of its body. */
const payloads = new WeakMap<IncomingMessage, Readable>();

/** Adapters that need nothing more. */
const prepared = new WeakSet();

/** Declares that an adapter hands all bodies out as bytes. Call it before the application is created. */
export function declareBytes(adapter: object): void {
  prepared.add(adapter);
}

/**
 * Keeps the host's parsers away from the routes that {@link ReadsBody}. Call it while the providers of
 * the application are created, which is before the host can add a parser.
 */
export function keepBodiesUnread(host: HttpAdapterHost): void {
  // In Nest's testing module the adapter comes after the providers.
  host.init$.subscribe(() => {
    const { httpAdapter } = host;
    if (prepared.has(httpAdapter)) return;
    prepared.add(httpAdapter);
    const instance: unknown = httpAdapter.getInstance();
    if (httpAdapter.getType() === 'fastify') prepareFastify(instance as FastifyLike);
    if (httpAdapter.getType() === 'express') {
      httpAdapter.use(skipParsers(instance as ExpressLike));
    }
  });
}

/** What is used of a Fastify instance; the package of Fastify is the host's. */
interface FastifyLike {
  addHook(name: 'onRoute', hook: (route: FastifyRoute) => void): void;
  hasContentTypeParser(type: string): boolean;
  addContentTypeParser(
    type: string,
    parser: (
      request: FastifyRequest,
      payload: Readable,
      done: (error: Error | null, body?: unknown) => void,
    ) => void,
  ): void;
}

interface FastifyRequest {
  readonly raw: IncomingMessage;
  readonly headers: IncomingMessage['headers'];
}

type PreParsing = (
  request: FastifyRequest,
  reply: unknown,
  payload: unknown,
  done: (error: null, payload: unknown) => void,
) => void;

interface FastifyRoute {
  readonly config?: object;
  preParsing?: PreParsing | PreParsing[];
}

function prepareFastify(instance: FastifyLike): void {
  // Clients cannot guess it, so the parser gets no request of another route.
  const mediaType = `application/x-unread-${crypto.randomUUID()}`;
  /** The media types that are hidden, until the parser has been chosen. */
  const hidden = new WeakMap<IncomingMessage, string | undefined>();

  const hideMediaType: PreParsing = ({ raw }, _reply, payload, done) => {
    hidden.set(raw, raw.headers['content-type']);
    raw.headers['content-type'] = mediaType;
    done(null, payload);
  };
  instance.addHook('onRoute', (route) => {
    if (!(READS_BODY in (route.config ?? {}))) return;
    route.preParsing = [hideMediaType, ...[route.preParsing ?? []].flat()];
    if (instance.hasContentTypeParser(mediaType)) return;
    instance.addContentTypeParser(mediaType, ({ raw }, payload, done) => {
      if (payload !== raw) payloads.set(raw, payload);
      const original = hidden.get(raw);
      if (original === undefined) delete raw.headers['content-type'];
      else raw.headers['content-type'] = original;
      done(null);
    });
  });
}

/** What is used of an Express application, version 4 or 5. */
interface ExpressLike {
  readonly router?: ExpressRouter;
  /** In Express 4. */
  readonly _router?: ExpressRouter;
}

interface ExpressRouter {
  readonly stack: readonly ExpressLayer[];
}

interface ExpressLayer {
  readonly route?: {
    readonly path: unknown;
    readonly methods: Readonly<Record<string, boolean>>;
    readonly stack: readonly { readonly handle: object }[];
  };
  match(path: string): boolean;
}

type ExpressHandler = (
  request: IncomingMessage & Skipped & { readonly path: string },
  response: unknown,
  next: () => void,
) => void;

/** The marks of a request that body-parser leaves alone: of version 1, and of version 2. */
interface Skipped {
  _body?: boolean;
  finished?: boolean;
}

function skipParsers(application: ExpressLike): ExpressHandler {
  let known = 0;
  let own: readonly ExpressLayer[] = [];
  return function keepPlantsUnread(request, _response, next) {
    if (request.method === 'POST' && !wasRead(request)) {
      const { stack } = application._router ?? application.router ?? { stack: [] };
      if (stack.length !== known) {
        known = stack.length;
        own = findOwnRoutes(stack);
      }
      if (own.some((layer) => isMatch(layer, request.path))) {
        request._body = true;
        request.finished = true;
      }
    }
    next();
  };
}

/** The routes that read bodies, but for those whose requests may be meant for a route of the host. */
function findOwnRoutes(stack: readonly ExpressLayer[]): ExpressLayer[] {
  const routes = stack.filter(({ route }) => route?.methods.post);
  const isOwn = ({ route }: ExpressLayer): boolean =>
    route?.stack.some(({ handle }) => Reflect.hasMetadata(READS_BODY, handle)) ?? false;
  // One path may have several versions, which a header distinguishes.
  const shared = new Set(routes.filter((each) => !isOwn(each)).map(({ route }) => route?.path));
  return routes.filter((each) => isOwn(each) && !shared.has(each.route?.path));
}

function isMatch(layer: ExpressLayer, path: string): boolean {
  try {
    return layer.match(path);
  } catch {
    // A malformed escape, which Express answers.
    return false;
  }
}

/** Whether other code has begun to read the body of a request, so that {@link readBody} cannot. */
export function wasRead(message: IncomingMessage): boolean {
  return (payloads.get(message) ?? message).readableDidRead;
}

/**
 * Reads the body of a request that no other code has read.
 *
 * @param limit bytes
 * @throws PlantStoreError `bodyTooLarge` when the body is larger; the rest of it is discarded
 */
export function readBody(request: HostRequest, limit: number): Promise<Buffer> {
  const message: IncomingMessage & Skipped = nodeRequest(request);
  // From now on other code must see that the body is not read yet.
  delete message._body;
  delete message.finished;
  const source = payloads.get(message) ?? message;
  return new Promise((resolve, reject) => {
    const done = (error: Error | null, bytes?: Buffer): void => {
      if (bytes === undefined) reject(error ?? new Error('The body was not read.'));
      else resolve(bytes);
    };
    if (Number(message.headers['content-length'] ?? 0) > limit) {
      throw new PlantStoreError('bodyTooLarge');
    }
    collectBytes(source, limit, done);
    if (source !== message) message.once('error', done);
  });
}

/**
 * Reads a stream to its end, and hands its bytes over without a copy when they came in one piece.
 *
 * @param limit bytes; of a longer stream the rest is discarded
 * @param done called with the bytes or with the error
 */
export function collectBytes(
  source: Readable,
  limit: number,
  done: (error: Error | null, bytes?: Buffer) => void,
): void {
  const chunks: Buffer[] = [];
  let size = 0;
  source.on('data', (chunk: Buffer) => {
    const isFirstBeyond = size <= limit && size + chunk.length > limit;
    size += chunk.length;
    if (size <= limit) {
      chunks.push(chunk);
    } else if (isFirstBeyond) {
      chunks.length = 0;
      done(new PlantStoreError('bodyTooLarge'));
    }
  });
  source.on('end', () => {
    const [first] = chunks;
    if (size <= limit) done(null, chunks.length === 1 ? first : Buffer.concat(chunks));
  });
  source.on('error', (error) => {
    // The client has gone: no fault of the server.
    if (size <= limit) done(Object.assign(error, { statusCode: 400 }));
  });
}
