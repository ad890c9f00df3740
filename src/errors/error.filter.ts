import {
  type ArgumentsHost,
  Catch,
  type ExceptionFilter,
  HttpException,
  type OnApplicationShutdown,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { errorChannel, type ErrorKind, PlantStoreError } from './errors';
import { FailureLog } from './failure-log';

/** Which line of the catalogue answers a status that Nest, Fastify or a guard of the host chose. */
const kindOfStatus: Partial<Record<number, ErrorKind>> = {
  401: 'missingCredentials',
  403: 'forbidden',
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
export class ErrorFilter implements ExceptionFilter, OnApplicationShutdown {
  private readonly failures = new FailureLog();

  constructor(private readonly adapterHost: HttpAdapterHost) {}

  onApplicationShutdown(): void {
    this.failures.flush();
  }

  catch(exception: unknown, host: ArgumentsHost): void {
    const failure = toPlantStoreError(exception);
    errorChannel.publish(failure);
    const http = host.switchToHttp();
    if (failure.getStatus() >= 500) this.failures.write(failure, http.getRequest<object>());

    const response: unknown = http.getResponse();
    const { httpAdapter } = this.adapterHost;
    for (const [name, value] of Object.entries(failure.headers)) {
      httpAdapter.setHeader(response, name, value);
    }
    httpAdapter.reply(response, failure.body, failure.getStatus());
  }
}

function toPlantStoreError(exception: unknown): PlantStoreError {
  if (exception instanceof PlantStoreError) return exception;
  return new PlantStoreError(kindOf(exception), undefined, { cause: exception });
}

function kindOf(exception: unknown): ErrorKind {
  const status = exception instanceof HttpException ? exception.getStatus() : 500;
  return kindOfStatus[status] ?? (status < 500 ? 'malformedRequest' : 'internal');
}
