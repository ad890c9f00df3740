import type { IncomingMessage } from 'node:http';
import { PlantStoreError } from '../errors/errors';
import { headerValues } from './request';

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
/** RFC 9110 section 5.6.4. A backslash escapes the character after it. */
const QUOTED_STRING = '"(?:[^"\\\\]|\\\\.)*"';
/** `utf8` is not a registered name, but some clients send it. */
const CHARSET = 'charset=(?:utf-?8|"utf-?8")';
const PARAMETER = `${CHARSET}|(?!charset=)${TOKEN}=(?:${TOKEN}|${QUOTED_STRING})`;

/** A media type, RFC 9110 section 8.3.1. Parameters may be empty, section 5.6.6. */
const JSON_IN_UTF_8 = new RegExp(
  `^application/json[ \\t]*(?:;[ \\t]*(?:(?:${PARAMETER})[ \\t]*)?)*$`,
  'i',
);

/**
 * Whether a `Content-Type` value means JSON in UTF-8: `application/json`, in any case, with well-formed
 * parameters. A `charset`, if present, must be `utf-8` or `utf8`.
 *
 * Why not a library: `content-type` and Node's `MIMEType` accept malformed parameters. All of them,
 * `fast-content-type-parse` too, keep one of two charsets and hide the other.
 */
export function isJsonMediaType(contentType: string): boolean {
  return contentType === 'application/json' || JSON_IN_UTF_8.test(contentType);
}

/** @throws PlantStoreError unless the body is declared as JSON in UTF-8 without a content coding */
export function assertJsonContent(message: IncomingMessage): void {
  const types = headerValues(message, 'content-type');
  if (types.length !== 1 || !types.every(isJsonMediaType)) {
    throw new PlantStoreError(
      'unsupportedMediaType',
      'The Content-Type must be application/json, in UTF-8.',
    );
  }
  // RFC 9110 section 8.4: a list of codings. `identity` means no coding.
  const codings = message.headers['content-encoding']?.split(',');
  if (codings?.some((coding) => !/^(?:identity)?$/i.test(coding.trim()))) {
    throw new PlantStoreError('unsupportedMediaType', 'The body must not have a Content-Encoding.');
  }
}
