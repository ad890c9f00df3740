import { type ArgumentsHost, Catch, HttpException } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { PlantStoreError } from '../../plants/errors/errors';
import { ErrorFilter } from '../../plants/http/error.filter';

/** Responds with the Error body to what the filter of the plants controller leaves: other routes, Nest and Fastify. */
@Catch()
export class ServiceErrorFilter extends ErrorFilter {
  override catch(exception: unknown, host: ArgumentsHost): void {
    const { is404 } = host.switchToHttp().getRequest<FastifyRequest>();
    this.respond(convertError(exception, is404), host);
  }
}

/** @param is404 whether the request has no route */
function convertError(cause: unknown, is404: boolean): PlantStoreError {
  if (cause instanceof PlantStoreError) return cause;
  // The exception of Nest repeats the path.
  if (is404) return new PlantStoreError('notFound');
  const isOfNest = cause instanceof HttpException;
  const status = isOfNest
    ? cause.getStatus()
    : Number((cause as { readonly statusCode?: unknown } | undefined)?.statusCode);
  const isOfClient = status >= 400 && status < 500;
  if (!isOfClient) return new PlantStoreError('internal', undefined, { cause });
  if (isOfNest) return new PlantStoreError('invalidRequest', sentenceOf(cause), { cause, status });
  // Fastify rejects a malformed request with various statuses.
  return new PlantStoreError('malformedRequest', undefined, { cause });
}

/** Returns what an exception of a guard, pipe or controller says. `ValidationPipe` says one sentence for each rule. */
function sentenceOf(exception: HttpException): string {
  const response = exception.getResponse();
  if (typeof response === 'string') return response;
  const { message } = response as { readonly message?: unknown };
  if (Array.isArray(message)) return message.join('; ');
  return typeof message === 'string' ? message : exception.message;
}
