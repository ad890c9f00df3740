import { type ArgumentsHost, Catch, type ExceptionFilter } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { PlantStoreError } from '../errors/errors';
import { FailureLog } from './failure-log';
import { type HostRequest, notesOf } from './request';
import { securityHeaders } from './security-headers';

/** Responds to the errors of this package with the Error body, and logs the cause of a 5xx. */
@Catch(PlantStoreError)
export class ErrorFilter implements ExceptionFilter<PlantStoreError> {
  constructor(
    private readonly adapterHost: HttpAdapterHost,
    private readonly failures: FailureLog,
  ) {}

  catch(failure: PlantStoreError, host: ArgumentsHost): void {
    this.respond(failure, host);
  }

  /** Responds with an error. Subclasses call it with the errors into which they convert others. */
  protected respond(failure: PlantStoreError, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const request = http.getRequest<HostRequest>();
    const response = http.getResponse<unknown>();
    notesOf(request).failure = failure;
    if (failure.getStatus() >= 500) this.failures.write(failure, request);

    const { httpAdapter } = this.adapterHost;
    // A timeout interceptor of the host may have sent a response already.
    if (httpAdapter.isHeadersSent(response)) return;
    for (const [name, value] of Object.entries({ ...securityHeaders, ...failure.headers })) {
      // Do not overwrite headers that the host has set.
      if (httpAdapter.getHeader(response, name) === undefined) {
        httpAdapter.setHeader(response, name, value);
      }
    }
    httpAdapter.reply(response, failure.body, failure.getStatus());
  }
}

/** The filter of the route that creates a plant. It also notes the outcome of the request, for metrics and logs. */
@Catch(PlantStoreError)
export class CreateErrorFilter extends ErrorFilter {
  override catch(failure: PlantStoreError, host: ArgumentsHost): void {
    notesOf(host.switchToHttp().getRequest<HostRequest>()).outcome = failure.outcome;
    super.catch(failure, host);
  }
}
