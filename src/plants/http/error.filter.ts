import type { IncomingMessage } from 'node:http';
import {
  type ArgumentsHost,
  Catch,
  type ExceptionFilter,
  HttpException,
  type OnApplicationShutdown,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { errorCatalogue, type ErrorKind, PlantStoreError } from '../errors/errors';
import { PlantsRepository } from '../plants.repository';
import { FailureLog } from './failure-log';
import { type HostRequest, nodeRequest } from './request';

/**
 * The security header fields of errors, pages and documents: no sniffing, no caching, no scripts and no
 * frames. No browser could act on them in the answer to a creation, which only a script can ask for.
 *
 * `Strict-Transport-Security` is left to the operator: it commits a whole host name to HTTPS.
 */
export const securityHeaders = {
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
} as const;

/** The catalogue entry for a status that Nest, Fastify or a guard of the host has set. */
const kindOfStatus: Partial<Record<number, ErrorKind>> = {
  401: 'missingCredentials',
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
  503: 'unavailable',
};

/**
 * Turns every exception into the Error body, and sets the `failure` property of the request. Of a 5xx
 * the log gets the cause.
 */
@Catch()
export class ErrorFilter implements ExceptionFilter, OnApplicationShutdown {
  private readonly failures: FailureLog;

  constructor(
    private readonly adapterHost: HttpAdapterHost,
    plants: PlantsRepository,
  ) {
    this.failures = new FailureLog(plants);
  }

  onApplicationShutdown(): void {
    this.failures.flush();
  }

  catch(exception: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const hostRequest = http.getRequest<HostRequest>();
    const response = http.getResponse<unknown>();
    const request = nodeRequest(hostRequest);
    const failure = toCatalogueError(exception, request);
    if (!isAborted(exception, request)) {
      hostRequest.failure = failure;
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

/** The error of the catalogue that answers an exception. */
function toCatalogueError(exception: unknown, request: IncomingMessage): PlantStoreError {
  if (exception instanceof PlantStoreError) return exception;
  if (isAborted(exception, request)) return new PlantStoreError('malformedRequest');
  const status = exception instanceof HttpException ? exception.getStatus() : 500;
  const kind = kindOfStatus[status] ?? (status < 500 ? 'malformedRequest' : 'internal');
  const isBearer = /^bearer(?:[ \t]|$)/i.test(request.headers.authorization ?? '');
  return new PlantStoreError(
    kind === 'missingCredentials' && isBearer ? 'invalidToken' : kind,
    undefined,
    { cause: exception },
  );
}

/** Whether the client closed the connection in the middle of the body. Nothing failed here. */
function isAborted(exception: unknown, request: IncomingMessage): boolean {
  return exception !== null && exception === request.errored;
}

/** Whether to log a failure. An unknown method or transfer coding is the client's mistake. */
function isServerFault(failure: PlantStoreError): boolean {
  return failure.getStatus() >= 500 && failure.error !== errorCatalogue.notImplemented.error;
}
