import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { HttpAdapterHost } from '@nestjs/core';
import { BodyTooLargeError } from '../errors/errors';
import { type HostRequest, nodeRequest } from '../http/request';
import { markForExpress, removeMarks, skipParsers } from './express';
import { bodySourceOf, markForFastify, prepareFastify } from './fastify';

/**
 * Declares that a route reads the bytes of its requests itself, with {@link readBody}. The parsers of a
 * host would otherwise read them first, round numbers and answer malformed JSON. No other route
 * of the host notices.
 */
export function ReadsBody(): MethodDecorator {
  return (_target, _name, { value }: PropertyDescriptor) => {
    markForExpress(value as object);
    markForFastify(value as object);
  };
}

const prepared = new WeakSet();

/** Declares that an adapter hands all bodies out as bytes, before the application is created. */
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
    // An application without HTTP has none.
    if (!(httpAdapter as object | undefined) || prepared.has(httpAdapter)) return;
    prepared.add(httpAdapter);
    if (httpAdapter.getType() === 'fastify') prepareFastify(httpAdapter.getInstance());
    const isExpress = httpAdapter.getType() === 'express';
    if (isExpress) httpAdapter.use(skipParsers(httpAdapter.getInstance()));
  });
}

/** Whether other code has begun to read the body, so that {@link readBody} cannot. */
export const wasRead = (message: IncomingMessage): boolean => bodySourceOf(message).readableDidRead;

/**
 * @param limit bytes
 * @throws BodyTooLargeError when the body is larger; the rest of it is discarded
 */
export function readBody(request: HostRequest, limit: number): Promise<Buffer> {
  const message = nodeRequest(request);
  const source = bodySourceOf(message);
  removeMarks(message);
  return new Promise((resolve, reject) => {
    if (Number(message.headers['content-length'] ?? 0) > limit) {
      throw new BodyTooLargeError(limit);
    }
    collectBytes(source, limit, (error, bytes = Buffer.of()) => {
      if (error) reject(error);
      else resolve(bytes);
    });
    if (source !== message) message.once('error', reject);
  });
}

/** @param limit bytes; of a longer stream the rest is discarded */
export function collectBytes(
  source: Readable,
  limit: number,
  done: (error: Error | null, bytes?: Buffer) => void,
): void {
  const chunks: Buffer[] = [];
  let size = 0;
  source.on('data', (chunk: Buffer) => {
    const wasWithin = size <= limit;
    size += chunk.length;
    if (size <= limit) {
      chunks.push(chunk);
    } else if (wasWithin) {
      chunks.length = 0;
      done(new BodyTooLargeError(limit));
    }
  });
  source.on('end', () => {
    if (size <= limit) done(null, Buffer.concat(chunks));
  });
  source.on('error', (error) => {
    // The client has gone: no fault of the server.
    if (size <= limit) done(Object.assign(error, { statusCode: 400 }));
  });
}
