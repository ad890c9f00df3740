import type { IncomingMessage } from 'node:http';
import {
  type ArgumentsHost,
  Catch,
  type ExceptionFilter,
  HttpException,
  type OnApplicationShutdown,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { type HostRequest, nodeRequest } from './node-request';
import {
  errorCatalogue,
  errorChannel,
  type ErrorKind,
  InvalidTokenError,
  MalformedRequestError,
  MissingCredentialsError,
  PlantStoreError,
  UnavailableError,
} from '../errors';
import { FailureLog } from './failure-log';

/** Which line of the catalogue answers a status that Nest, Fastify or a guard of the host chose. */
const kindOfStatus: Partial<Record<number, ErrorKind>> = {
  403: 'forbidden',
  404: 'notFound',
  // Of a time-out of the host's: the service's own does not come by here.
  408: 'outcomeUnknown',
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
    const http = host.switchToHttp();
    this.answer(exception, http.getRequest<HostRequest>(), http.getResponse());
  }

  /** Answers a request with what is thrown, unless it is answered already. */
  answer(exception: unknown, request: HostRequest, response: unknown): void {
    const failure = toPlantStoreError(exception, nodeRequest(request));
    if (!isHangUp(exception, nodeRequest(request))) {
      errorChannel.publish(failure);
      if (isFaultOfServer(failure)) this.failures.write(failure, request);
    }

    const { httpAdapter } = this.adapterHost;
    // By a time-out of the host's, for example.
    if (httpAdapter.isHeadersSent(response)) return;
    for (const [name, value] of Object.entries(failure.headers)) {
      // A guard of the host knows its own challenge better.
      if (httpAdapter.getHeader(response, name) === undefined) {
        httpAdapter.setHeader(response, name, value);
      }
    }
    httpAdapter.reply(response, failure.body, failure.getStatus());
  }
}

function toPlantStoreError(exception: unknown, request: IncomingMessage): PlantStoreError {
  if (exception instanceof PlantStoreError) return exception;
  if (isHangUp(exception, request)) return new MalformedRequestError();
  const options = { cause: exception };
  const status = exception instanceof HttpException ? exception.getStatus() : 500;
  switch (status) {
    case 401:
      return /^bearer(?:[ \t]|$)/i.test(request.headers.authorization ?? '')
        ? new InvalidTokenError()
        : new MissingCredentialsError();
    case 503:
      return new UnavailableError(options);
    default:
      return new PlantStoreError(
        kindOfStatus[status] ?? (status < 500 ? 'malformedRequest' : 'internal'),
        undefined,
        options,
      );
  }
}

/** Whether the caller hung up amid the body: it gets no answer, and nothing failed here. */
function isHangUp(exception: unknown, request: IncomingMessage): boolean {
  return exception !== null && exception === request.errored;
}

/** Whether the log shall tell: a method or transfer coding that nobody knows is the caller's doing. */
function isFaultOfServer(failure: PlantStoreError): boolean {
  return failure.getStatus() >= 500 && failure.error !== errorCatalogue.notImplemented.error;
}
