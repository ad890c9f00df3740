import type { IncomingMessage } from 'node:http';
import { MIMEType } from 'node:util';
import { PlantStoreError } from '../errors/errors';
import { headerValues } from './request';

/**
 * Matches a parameter `charset` that is not UTF-8, wherever it stands, because `MIMEType` keeps the first of several
 * and hides the others. After `charset`, UTF-8 is: `=`, the name bare or in quotation marks, white space, then `;` or the
 * end. `utf8` is not a registered name, but some clients send it.
 */
const OTHER_CHARSET = /charset(?!=(?:utf-?8|"utf-?8")[ \t]*(?:;|$))/i;

/**
 * Whether a `Content-Type` value (RFC 9110 section 8.3.1) means JSON in UTF-8: `application/json` in any case, with a
 * `charset`, if it has one, of `utf-8` or `utf8`. Unknown and malformed parameters are ignored.
 */
export function isJsonMediaType(contentType: string): boolean {
  if (contentType === 'application/json') return true;
  try {
    const { essence } = new MIMEType(contentType);
    return essence === 'application/json' && !OTHER_CHARSET.test(contentType);
  } catch {
    return false;
  }
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
