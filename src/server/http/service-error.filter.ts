import { type ArgumentsHost, Catch, HttpException } from '@nestjs/common';
import { PlantStoreError } from '../../plants/errors/errors';
import { ErrorFilter } from '../../plants/http/error.filter';

/** Responds with the Error body to what the filter of the create route leaves: other routes, Nest and Fastify. */
@Catch()
export class ServiceErrorFilter extends ErrorFilter {
  override catch(exception: unknown, host: ArgumentsHost): void {
    this.respond(convertError(exception), host);
  }
}

function convertError(cause: unknown): PlantStoreError {
  if (cause instanceof PlantStoreError) return cause;
  const status =
    cause instanceof HttpException
      ? cause.getStatus()
      : Number((cause as { readonly statusCode?: unknown } | undefined)?.statusCode);
  if (status === 404) return new PlantStoreError('notFound');
  // Fastify rejects a malformed request with various statuses.
  const kind = status >= 400 && status < 500 ? 'malformedRequest' : 'internal';
  return new PlantStoreError(kind, undefined, { cause });
}
