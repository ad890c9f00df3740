import {
  type ArgumentsHost,
  Catch,
  type ExceptionFilter,
  HttpException,
  Logger,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { type ErrorKind, errorCatalogue, PlantStoreError } from './errors';

/** Which line of the catalogue answers a status that Nest or Fastify chose. */
const kindOfStatus: Partial<Record<number, ErrorKind>> = {
  400: 'malformedRequest',
  404: 'notFound',
  408: 'requestTimeout',
  413: 'bodyTooLarge',
  415: 'unsupportedMediaType',
  417: 'expectationFailed',
  429: 'tooManyRequests',
  431: 'headersTooLarge',
  501: 'notImplemented',
};

/**
 * Shapes everything that is thrown into the one Error body of the contract.
 *
 * A 4xx tells its reader what to mend. A 5xx tells the caller only what the catalogue says of it;
 * the log gets the cause.
 */
@Catch()
export class ErrorFilter implements ExceptionFilter {
  private readonly logger = new Logger('Errors');

  constructor(private readonly adapterHost: HttpAdapterHost) {}

  catch(exception: unknown, host: ArgumentsHost): void {
    const failure = toPlantStoreError(exception);
    if (failure.getStatus() >= 500) {
      this.logger.error(failure.cause ?? failure, `${failure.error} ${failure.message}`);
    }

    const response: unknown = host.switchToHttp().getResponse();
    const { httpAdapter } = this.adapterHost;
    for (const [name, value] of Object.entries(failure.headers)) {
      httpAdapter.setHeader(response, name, value);
    }
    httpAdapter.reply(response, failure.body, failure.getStatus());
  }
}

function toPlantStoreError(exception: unknown): PlantStoreError {
  if (exception instanceof PlantStoreError) return exception;
  const kind = exception instanceof HttpException && kindOfStatus[exception.getStatus()];
  if (!kind) return new PlantStoreError('internal', undefined, { cause: exception });
  const { meaning } = errorCatalogue[kind];
  return new PlantStoreError(kind, meaning, { cause: exception });
}
