import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { BodyTooLargeError } from '../errors/errors';
import { removeMarks } from './express';

/**
 * @param limit bytes; of a larger body the rest is discarded
 * @param source what the body comes from, where hooks of a host have put another stream in its place
 * @throws BodyTooLargeError when the body is larger
 */
export function readBody(
  message: IncomingMessage,
  limit: number,
  source: Readable = message,
): Promise<Buffer> {
  removeMarks(message);
  return new Promise((resolve, reject) => {
    if (Number(message.headers['content-length'] ?? 0) > limit) throw new BodyTooLargeError(limit);
    const chunks: Buffer[] = [];
    let size = 0;
    source.on('data', (chunk: Buffer) => {
      const wasWithin = size <= limit;
      size += chunk.length;
      if (size <= limit) {
        chunks.push(chunk);
      } else if (wasWithin) {
        chunks.length = 0;
        reject(new BodyTooLargeError(limit));
      }
    });
    source.on('end', () => {
      resolve(Buffer.concat(chunks.splice(0)));
    });
    source.on('error', reject);
    if (source !== message) message.once('error', reject);
  });
}
