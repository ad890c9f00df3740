import type { IncomingMessage } from 'node:http';
import { BodyTooLargeError, MalformedRequestError } from '../errors/errors';

/** @throws BodyTooLargeError when the `Content-Length` of a request is larger than the limit in bytes */
export function assertLength({ headers }: IncomingMessage, limit: number): void {
  if (Number(headers['content-length'] ?? 0) > limit) throw new BodyTooLargeError(limit);
}

/**
 * Reads the body of a request that nobody has read.
 *
 * @param limit the maximum size of the body in bytes
 * @throws BodyTooLargeError when the body is larger than the limit
 * @throws MalformedRequestError when the client disconnects before the end of the body
 */
export function readBody(message: IncomingMessage, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const receive = (chunk: Buffer): void => {
      chunks.push(chunk);
      size += chunk.length;
      if (size <= limit) return;
      // Discard the rest until the response is sent. A body without Content-Length may never end.
      message.off('data', receive).resume();
      reject(new BodyTooLargeError(limit));
    };
    const fail = (): void => {
      reject(new MalformedRequestError('The request ended before its body was complete.'));
    };
    // An empty body may have ended already.
    if (message.readableEnded) resolve(Buffer.alloc(0));
    else if (message.destroyed) fail();
    message.on('data', receive).on('error', fail).on('close', fail);
    message.on('end', () => {
      resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks));
    });
  });
}
