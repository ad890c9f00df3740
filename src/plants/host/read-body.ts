import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { BodyTooLargeError, ClientDisconnectedError, NotJsonError } from '../errors/errors';
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
 * @param response the response to the request, until which the bytes take memory
 * @param limit bytes
 * @throws BodyTooLargeError when the body is larger
 * @throws ClientDisconnectedError when the client disconnects before the end of the body
 * @throws NotJsonError when a hook of the host decodes the body, and cannot
 * @throws UnavailableError when there is no memory for it
 */
export function readBody(
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
    const receive = (data: Buffer | string): void => {
      const chunk = toBytes(data, source);
      size += chunk.length;
      const fault = size > limit ? new BodyTooLargeError(limit) : memory.note(size, response);
      if (fault === undefined) {
        chunks.push(chunk);
      } else {
        source.off('data', receive);
        chunks.length = 0;
        reject(fault);
      }
    };
    const end = (): void => {
      resolve(joinChunks(chunks.splice(0)));
    };
    const fail = (error: Error | null): void => {
      const isAborted = source === message || (error && error === message.errored);
      reject(isAborted ? new ClientDisconnectedError() : toClientError(error));
    };
    source.on('data', receive).on('end', end).on('error', fail);
    // A stream may also be destroyed without an error, and before anybody listens.
    source.on('close', () => {
      if (!source.readableEnded) fail(source.errored);
    });
    if (source.readableEnded) end();
    else if (source.destroyed) fail(source.errored);
    // A pipe does not pass on that the client has disconnected.
    if (source !== message) {
      message.on('close', () => {
        if (!message.complete) reject(new ClientDisconnectedError());
      });
    }
    // The host may have paused it.
    source.resume();
  });
}

/** Most bodies are one chunk, which need not be copied. */
function joinChunks(chunks: readonly Buffer[]): Buffer {
  const [first] = chunks;
  return first && chunks.length === 1 ? first : Buffer.concat(chunks);
}

/** A chunk of a stream as bytes, if the host has made strings of them. */
function toBytes(chunk: Buffer | string, { readableEncoding }: Readable): Buffer {
  return typeof chunk === 'string' ? Buffer.from(chunk, readableEncoding ?? 'utf8') : chunk;
}

/**
 * The error of a stream that a hook of the host has put in the place of the body. As in Fastify, it is the
 * client's, a truncated gzip body for example, unless its status says otherwise.
 */
function toClientError(error: (Error & { readonly statusCode?: unknown }) | null): Error {
  const { statusCode = 400 } = error ?? {};
  return error && statusCode !== 400 ? error : new NotJsonError('The body cannot be decoded.');
}
