import type { HttpAdapterHost } from '@nestjs/core';
import * as express from './express';
import * as fastify from './fastify';

/**
 * Declares that a route reads the raw bodies of its requests itself. Otherwise, the parsers of the host would
 * read them first, round numbers and respond to malformed JSON. Other routes are not affected.
 */
export function ReadsRawBody(): MethodDecorator {
  return (_target, _name, { value }: PropertyDescriptor) => {
    express.markForExpress(value as object);
    fastify.markForFastify(value as object);
  };
}

const prepared = new WeakSet();

/**
 * Disables the body parsers of the host for routes with {@link ReadsRawBody}. Call it while the providers of
 * the application are created, which is before the host can add a parser.
 */
export function disableHostBodyParsers(host: HttpAdapterHost): void {
  // In the testing module of Nest, the adapter is created after the providers.
  host.init$.subscribe(() => {
    const { httpAdapter } = host;
    // An application without HTTP has no adapter.
    if (!(httpAdapter as object | undefined) || prepared.has(httpAdapter)) return;
    prepared.add(httpAdapter);
    if (httpAdapter.getType() === 'fastify') fastify.skipParsers(httpAdapter.getInstance());
    const isExpress = httpAdapter.getType() === 'express';
    if (isExpress) httpAdapter.use(express.skipParsers(httpAdapter.getInstance()));
  });
}
