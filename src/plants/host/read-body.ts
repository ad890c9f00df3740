import type { IncomingMessage, ServerResponse } from 'node:http';
import { BodyTooLargeError } from '../errors/errors';
import type { BodyMemory } from './body-memory';
import { removeMarks } from './express';
import { bodyOf } from './fastify';

/** @throws BodyTooLargeError when the `Content-Length` of a request is larger than the limit, in bytes */
export function assertLength({ headers }: IncomingMessage, limit: number): void {
  if (Number(headers['content-length'] ?? 0) > limit) throw new BodyTooLargeError(limit);
}

/**
 * Reads the body of a request. If the body is rejected, the rest of it is discarded.
 *
 * @param response the answer to the request, until which the bytes take memory
 * @param limit bytes
 * @throws BodyTooLargeError when the body is larger
 * @throws UnavailableError when there is no memory for it
 */
export async function readBody(
  message: IncomingMessage,
  response: ServerResponse,
  limit: number,
  memory: BodyMemory,
): Promise<Buffer> {
  const source = bodyOf(message);
  removeMarks(message);
  // What a hook of the host makes of the body may be shorter.
  if (source === message) assertLength(message, limit);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const receive = (chunk: Buffer): void => {
      size += chunk.length;
      const fault = size > limit ? new BodyTooLargeError(limit) : memory.note(size, response);
      if (fault === undefined) {
        chunks.push(chunk);
      } else {
        source.off('data', receive).resume();
        chunks.length = 0;
        reject(fault);
      }
    };
    source.on('data', receive);
    source.on('end', () => {
      resolve(Buffer.concat(chunks.splice(0)));
    });
    source.on('error', reject);
    if (source !== message) message.once('error', reject);
  });
}
