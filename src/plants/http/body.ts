import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { NotJsonError } from '../errors/errors';

/** Whether the headers announce a body, RFC 9112 section 6. It may be empty. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
}

/** Decodes a JSON body. @throws NotJsonError when it is empty or not UTF-8 */
export function decodeBody(bytes: Buffer): string {
  if (bytes.length === 0) throw new NotJsonError('The body is empty.');
  if (!isUtf8(bytes)) throw new NotJsonError('The body is not UTF-8.');
  return bytes.toString();
}
