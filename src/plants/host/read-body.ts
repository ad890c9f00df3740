import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { BodyTooLargeError, ClientDisconnectedError, NotJsonError } from '../errors/errors';
import type { BodyMemory } from './body-memory';
import { removeMarks } from './express';
import { bodyOf } from './fastify';

/** @throws BodyTooLargeError when the `Content-Length` of a request is larger than the limit in bytes */
export function assertLength({ headers }: IncomingMessage, limit: number): void {
  if (Number(headers['content-length'] ?? 0) > limit) throw new BodyTooLargeError(limit);
}

/**
 * Reads the body of a request. If the body is rejected, the rest of it is discarded.
 *
 * @param response the response; the body counts against the memory limit until it closes
 * @param limit the maximum size of the body in bytes
 * @throws BodyTooLargeError when the body is larger than the limit
 * @throws ClientDisconnectedError when the client disconnects before the end of the body
 * @throws NotJsonError when a hook of the host cannot decode the body
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
  // A hook of the host may replace the body with a shorter one.
  if (source === message) assertLength(message, limit);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const receive = (data: Buffer | string): void => {
      const chunk = toBytes(data, source);
      size += chunk.length;
      const error = size > limit ? new BodyTooLargeError(limit) : memory.reserve(size, response);
      if (error === undefined) {
        chunks.push(chunk);
      } else {
        source.off('data', receive);
        chunks.length = 0;
        reject(error);
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
    // A stream can also be destroyed without an error, or before these listeners were added.
    source.on('close', () => {
      if (!source.readableEnded) fail(source.errored);
    });
    if (source.readableEnded) end();
    else if (source.destroyed) fail(source.errored);
    // A piped stream does not report that the client disconnected.
    if (source !== message) {
      message.on('close', () => {
        if (!message.complete) reject(new ClientDisconnectedError());
      });
    }
    // The host may have paused the stream.
    source.resume();
  });
}

/** Joins the chunks of a body. Most bodies are a single chunk, which is not copied. */
function joinChunks(chunks: readonly Buffer[]): Buffer {
  const [first] = chunks;
  return first && chunks.length === 1 ? first : Buffer.concat(chunks);
}

/** Converts a chunk of a stream to bytes: the host may have set an encoding, so that it is a string. */
function toBytes(chunk: Buffer | string, { readableEncoding }: Readable): Buffer {
  return typeof chunk === 'string' ? Buffer.from(chunk, readableEncoding ?? 'utf8') : chunk;
}

/**
 * Converts the error of a stream with which a hook of the host replaced the body. As in Fastify, the client is
 * at fault, for example for a truncated gzip body, unless the error has another status.
 */
function toClientError(error: (Error & { readonly statusCode?: unknown }) | null): Error {
  const { statusCode = 400 } = error ?? {};
  return error && statusCode !== 400 ? error : new NotJsonError('The body cannot be decoded.');
}
