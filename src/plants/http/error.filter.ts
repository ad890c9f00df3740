import type { IncomingMessage } from 'node:http';
import {
  type ArgumentsHost,
  Catch,
  type ExceptionFilter,
  HttpException,
  type OnApplicationShutdown,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import {
  errorCatalogue,
  errorChannel,
  type ErrorEvent,
  type ErrorKind,
  InvalidTokenError,
  MalformedRequestError,
  MissingCredentialsError,
  PlantStoreError,
  UnavailableError,
} from '../errors/errors';
import { FailureLog } from './failure-log';
import { type HostRequest, nodeRequest } from './node-request';
import { securityHeaders } from './security-headers';

/** The catalogue entry for a status that Nest, Fastify or a guard of the host has set. */
const kindOfStatus: Partial<Record<number, ErrorKind>> = {
  403: 'forbidden',
  404: 'notFound',
  // Set by a timeout interceptor of the host, when the plant may already be stored.
  408: 'outcomeUnknown',
  413: 'bodyTooLarge',
  415: 'unsupportedMediaType',
  417: 'expectationFailed',
  429: 'tooManyRequests',
  431: 'headersTooLarge',
  501: 'notImplemented',
};

/** Turns every exception into the Error body. Of a 5xx the log gets the cause. */
@Catch()
export class ErrorFilter implements ExceptionFilter, OnApplicationShutdown {
  private readonly failures = new FailureLog();

  constructor(private readonly adapterHost: HttpAdapterHost) {}

  onApplicationShutdown(): void {
    this.failures.flush();
  }

  catch(exception: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const hostRequest = http.getRequest<HostRequest>();
    const response = http.getResponse<unknown>();
    const request = nodeRequest(hostRequest);
    const failure = toPlantStoreError(exception, request);
    if (!isAborted(exception, request)) {
      errorChannel.publish({ error: failure, request } satisfies ErrorEvent);
      if (isServerFault(failure)) this.failures.write(failure, hostRequest);
    }

    const { httpAdapter } = this.adapterHost;
    // A timeout interceptor of the host may have answered.
    if (httpAdapter.isHeadersSent(response)) return;
    for (const [name, value] of Object.entries({ ...securityHeaders, ...failure.headers })) {
      // The host may have set fields of its own, a guard its challenge.
      if (httpAdapter.getHeader(response, name) === undefined) {
        httpAdapter.setHeader(response, name, value);
      }
    }
    httpAdapter.reply(response, failure.body, failure.getStatus());
  }
}

function toPlantStoreError(exception: unknown, request: IncomingMessage): PlantStoreError {
  if (exception instanceof PlantStoreError) return exception;
  if (isAborted(exception, request)) return new MalformedRequestError();
  const options = { cause: exception };
  const status = exception instanceof HttpException ? exception.getStatus() : 500;
  if (status === 401) {
    const isBearer = /^bearer(?:[ \t]|$)/i.test(request.headers.authorization ?? '');
    return isBearer ? new InvalidTokenError() : new MissingCredentialsError();
  }
  if (status === 503) return new UnavailableError(options);
  const kind = kindOfStatus[status] ?? (status < 500 ? 'malformedRequest' : 'internal');
  return new PlantStoreError(kind, undefined, options);
}

/** Whether the client closed the connection in the middle of the body. Nothing failed here. */
function isAborted(exception: unknown, request: IncomingMessage): boolean {
  return exception !== null && exception === request.errored;
}

/** Whether to log a failure. An unknown method or transfer coding is the client's mistake. */
function isServerFault(failure: PlantStoreError): boolean {
  return failure.getStatus() >= 500 && failure.error !== errorCatalogue.notImplemented.error;
}
