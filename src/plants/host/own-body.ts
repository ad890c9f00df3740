import type { HttpAdapterHost } from '@nestjs/core';
import { markForExpress, skipParsers } from './express';
import { markForFastify, replaceParser } from './fastify';

/**
 * Declares that a route reads the bytes of its requests itself. The parsers of a host would otherwise
 * read them first, round numbers and answer malformed JSON. No other route of the host notices.
 */
export function ReadsBody(): MethodDecorator {
  return (_target, _name, { value }: PropertyDescriptor) => {
    markForExpress(value as object);
    markForFastify(value as object);
  };
}

const prepared = new WeakSet();

/**
 * Keeps the host's parsers away from the routes that {@link ReadsBody}. Call it while the providers of
 * the application are created, which is before the host can add a parser.
 *
 * @param limit the most bytes of a body
 */
export function keepParsersAway(host: HttpAdapterHost, limit: number): void {
  // In Nest's testing module the adapter comes after the providers.
  host.init$.subscribe(() => {
    const { httpAdapter } = host;
    // An application without HTTP has none.
    if (!(httpAdapter as object | undefined) || prepared.has(httpAdapter)) return;
    prepared.add(httpAdapter);
    if (httpAdapter.getType() === 'fastify') replaceParser(httpAdapter.getInstance(), limit);
    const isExpress = httpAdapter.getType() === 'express';
    if (isExpress) httpAdapter.use(skipParsers(httpAdapter.getInstance()));
  });
}
