import { type IncomingMessage, STATUS_CODES } from 'node:http';
import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { hasBearerScheme } from '../auth/bearer-token';
import {
  ClientDisconnectedError,
  createStatusEntry,
  type ErrorKind,
  NotImplementedError,
  PlantStoreError,
} from '../errors/errors';
import { PlantsRepository } from '../plants.repository';
import { FailureLog } from './failure-log';
import { type HostRequest, nodeRequest } from './request';

/**
 * The security headers of errors, pages and documents: no sniffing, no caching, no scripts and no frames.
 * Successful create responses do not need them: only scripts can send such requests.
 *
 * `Strict-Transport-Security` is left to the operator, because it commits a whole host name to HTTPS.
 */
export const securityHeaders = {
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-store',
  'Content-Security-Policy':
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
} as const;

/**
 * The catalogue entry for a status that the host returns: its guards, interceptors and pipes, or Nest. Any
 * other status has the number of {@link createStatusEntry}, and if it is a 4xx, the message of the host.
 */
const kindOfStatus: Partial<Record<number, ErrorKind>> = {
  401: 'missingCredentials',
  403: 'forbidden',
  404: 'notFound',
  // An interceptor of the host stopped waiting, so the plant may be stored.
  408: 'outcomeUnknown',
  429: 'tooManyRequests',
  501: 'notImplemented',
  503: 'unavailable',
  504: 'outcomeUnknown',
};

/**
 * Turns every exception into the Error body, and sets the `failure` property of the request. The cause of a
 * 5xx is logged.
 */
@Catch()
export class ErrorFilter implements ExceptionFilter {
  private readonly failures: FailureLog;

  constructor(
    private readonly adapterHost: HttpAdapterHost,
    plants: PlantsRepository,
  ) {
    this.failures = new FailureLog(plants);
  }

  catch(exception: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const hostRequest = http.getRequest<HostRequest>();
    const response = http.getResponse<unknown>();
    const request = nodeRequest(hostRequest);
    const failure = toResponseError(exception, request);
    if (!(failure instanceof ClientDisconnectedError)) {
      hostRequest.failure = failure;
      if (isServerFailure(failure)) this.failures.write(failure, hostRequest);
    }

    const { httpAdapter } = this.adapterHost;
    // A timeout interceptor of the host may have sent a response already.
    if (httpAdapter.isHeadersSent(response)) return;
    for (const [name, value] of Object.entries({ ...securityHeaders, ...failure.headers })) {
      // Do not overwrite headers that the host has set, such as the challenge of a guard.
      if (httpAdapter.getHeader(response, name) === undefined) {
        httpAdapter.setHeader(response, name, value);
      }
    }
    httpAdapter.reply(response, failure.body, failure.getStatus());
  }
}

/** Converts an exception to the error that the response shows. */
function toResponseError(exception: unknown, request: IncomingMessage): PlantStoreError {
  if (exception instanceof PlantStoreError) return exception;
  const status = statusOf(exception);
  const options = { cause: exception, headers: retryAfterOf(exception) };
  const kind = kindOfStatus[status];
  if (kind === undefined) {
    const message = status < 500 ? messageOf(exception, status) : undefined;
    return new PlantStoreError(createStatusEntry(status), message, options);
  }
  const isInvalidToken = status === 401 && hasBearerScheme(request.headers.authorization ?? '');
  return new PlantStoreError(isInvalidToken ? 'invalidToken' : kind, undefined, options);
}

/** The errors of `http-errors` and Fastify. Like `HttpException`, they tell Nest which status to return. */
interface HttpError {
  readonly statusCode?: unknown;
  readonly message?: unknown;
  readonly headers?: unknown;
}

/** Returns the status that an exception of the host requires; 500 unless that is a redirection or an error. */
function statusOf(exception: unknown): number {
  // The TimeoutError of any copy of RxJS.
  if (exception instanceof Error && exception.name === 'TimeoutError') return 408;
  const status =
    exception instanceof HttpException
      ? exception.getStatus()
      : Number((exception as HttpError | undefined)?.statusCode);
  return Number.isInteger(status) && status >= 300 && status < 600 ? status : 500;
}

/** Returns the message that Nest would send to the client for an exception. */
function messageOf(exception: unknown, status: number): string {
  const response = exception instanceof HttpException ? exception.getResponse() : exception;
  const { message = response } = Object(response) as HttpError;
  // Nest hides an error that is the response of an exception from the client.
  const isHidden = exception instanceof HttpException && response instanceof Error;
  const texts = [message].flat().filter((text) => typeof text === 'string' && text !== '');
  return isHidden || texts.length === 0 ? `${STATUS_CODES[status] ?? status}` : texts.join('; ');
}

/** Returns the `Retry-After` header of an exception. Errors of `http-errors` can have one. */
function retryAfterOf(exception: unknown): Record<string, string> {
  const { headers } = Object(exception) as HttpError;
  const entries = Object.entries(Object(headers) as object).filter(([name]) =>
    /^retry-after$/i.test(name),
  );
  return Object.fromEntries(entries.map(([, value]) => ['Retry-After', String(value)]));
}

/** Whether to log a failure. An unknown method or transfer coding is the client's mistake. */
function isServerFailure(failure: PlantStoreError): boolean {
  return failure.getStatus() >= 500 && !(failure instanceof NotImplementedError);
}
