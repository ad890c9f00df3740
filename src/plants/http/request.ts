import type { IncomingMessage } from 'node:http';
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Caller } from '../auth/caller';
import { InvalidIdempotencyKeyError } from '../errors/errors';
import { assertIdempotencyKey } from '../idempotency-key';

/** A request as Nest hands it out: Fastify wraps Node's, Express extends it. */
export type HostRequest = (IncomingMessage | { readonly raw: IncomingMessage }) & {
  /**
   * The body as a parser has left it: parsed by one of the host, or the bytes themselves, or the error
   * for which ours could not read them.
   */
  readonly body?: unknown;
  /** The bytes of the body, when the host was created with Nest's `rawBody: true`. */
  readonly rawBody?: Buffer;
  /** Who calls, as our guard or one of the host has found out. */
  caller?: Partial<Caller>;
  /** The id of the new plant, once its content is valid. */
  plantId?: bigint;
};

export function nodeRequest(request: HostRequest): IncomingMessage {
  return 'raw' in request ? request.raw : request;
}

/**
 * The path of a request target, RFC 9112 section 3.2, for logs and traces: without query and
 * authority, which may hold secrets.
 */
export function pathOf(target: string): string {
  const [withoutQuery = ''] = target.split('?', 1);
  return withoutQuery.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, '');
}

/**
 * Every value of a header field, in the order sent. Node's `headers` keeps one of several
 * `Authorization`, `Content-Type` or `Host` fields and hides the rest.
 *
 * @param name in lower case
 */
export function fieldValues(request: IncomingMessage, name: string): string[] {
  const { rawHeaders } = request;
  const values: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const field = rawHeaders[at] ?? '';
    const isSameLength = field.length === name.length;
    if (isSameLength && field.toLowerCase() === name) values.push(rawHeaders[at + 1] ?? '');
  }
  return values;
}

const requestOf = (context: ExecutionContext): HostRequest =>
  context.switchToHttp().getRequest<HostRequest>();

/**
 * The request, for a pipe that reads its body. To Nest it is a parameter of type `custom`, which a
 * global `ValidationPipe` of a host leaves alone.
 */
export const HttpRequest = createParamDecorator((_: unknown, context) => requestOf(context));

/** The caller of the request, if our guard or one of the host has set it. What has no name is no caller. */
export const CallerOfRequest = createParamDecorator((_: unknown, context): Caller | undefined => {
  const { caller } = requestOf(context);
  return typeof caller?.name === 'string' ? (caller as Caller) : undefined;
});

/**
 * A field value: the content of an RFC 9651 String, section 3.3.3, or a key without quotation marks. A
 * comma would separate the values of a list, RFC 9110 section 5.3.
 */
const KEY_FIELD = /^(?:"((?:[^"\\]|\\["\\])*)"|([^",]*))$/;

/**
 * Reads the field `Idempotency-Key`: `"abc"`, a String of RFC 9651, is the same key as `abc`.
 *
 * @returns undefined when the request has none
 * @throws InvalidIdempotencyKeyError when the field is malformed, empty or repeated
 */
export const IdempotencyKey = createParamDecorator((_: unknown, context) => {
  const request = nodeRequest(requestOf(context));
  if (request.headers['idempotency-key'] === undefined) return undefined;
  const [field = '', ...others] = fieldValues(request, 'idempotency-key');
  if (others.length > 0) {
    throw new InvalidIdempotencyKeyError(
      'The request must not have more than one Idempotency-Key header.',
    );
  }
  const [, quoted, bare = ''] = KEY_FIELD.exec(field) ?? [];
  const key = quoted?.replaceAll(/\\(.)/g, '$1') ?? bare;
  assertIdempotencyKey(key);
  return key;
});
