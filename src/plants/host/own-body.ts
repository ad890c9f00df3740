import type { HttpAdapterHost } from '@nestjs/core';
import * as express from './express';
import * as fastify from './fastify';

/**
 * Declares that a route reads the bytes of its requests itself. The parsers of a host would otherwise
 * read them first, round numbers and answer malformed JSON. No other route of the host notices.
 */
export function ReadsBody(): MethodDecorator {
  return (_target, _name, { value }: PropertyDescriptor) => {
    express.markForExpress(value as object);
    fastify.markForFastify(value as object);
  };
}

const prepared = new WeakSet();

/**
 * Keeps the host's parsers away from the routes that {@link ReadsBody}. Call it while the providers of
 * the application are created, which is before the host can add a parser.
 */
export function keepParsersAway(host: HttpAdapterHost): void {
  // In Nest's testing module the adapter comes after the providers.
  host.init$.subscribe(() => {
    const { httpAdapter } = host;
    // An application without HTTP has none.
    if (!(httpAdapter as object | undefined) || prepared.has(httpAdapter)) return;
    prepared.add(httpAdapter);
    if (httpAdapter.getType() === 'fastify') fastify.skipParsers(httpAdapter.getInstance());
    const isExpress = httpAdapter.getType() === 'express';
    if (isExpress) httpAdapter.use(express.skipParsers(httpAdapter.getInstance()));
  });
}
