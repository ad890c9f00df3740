import type { IncomingMessage } from 'node:http';
import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { InvalidTokenError } from '../errors';
import { type HostRequest, nodeRequest } from '../http';
import { BearerToken } from './bearer-token';
import { RequiredScope, type Scope } from './scope';
import { type Caller, TokenVerifier } from './token-verifier';

type GuardedRequest = HostRequest & { caller?: Caller };

type Handler = ReturnType<ExecutionContext['getHandler']>;

/**
 * Admits requests with a valid bearer token, RFC 6750, that has the scope of the route, by default
 * `create`, and sets the `caller` property of the request.
 */
@Injectable()
export class BearerGuard implements CanActivate {
  private latest: { readonly handler: Handler; readonly scope: Scope | undefined } | undefined;

  constructor(
    private readonly verifier: TokenVerifier,
    private readonly reflector: Reflector,
  ) {}

  /**
   * @throws MissingCredentialsError when the request has no bearer credentials
   * @throws InvalidTokenError when the bearer token is invalid
   * @throws InsufficientScopeError when the token is valid but lacks the required scope
   * @throws UnavailableError when the token cannot be verified now
   */
  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    // Not switchToHttp(), which adds three functions to the context of each request.
    const request = context.getArgByIndex<GuardedRequest>(0);
    const scope = this.scopeOf(context.getHandler());
    const caller = this.authenticate(nodeRequest(request), scope);
    return caller instanceof Promise
      ? caller.then((verified) => admit(request, verified))
      : admit(request, caller);
  }

  /** The scope that a route requires: its metadata, not looked up again for requests to the same route. */
  private scopeOf(handler: Handler): Scope | undefined {
    if (this.latest?.handler !== handler) {
      this.latest = { handler, scope: this.reflector.get(RequiredScope, handler) };
    }
    return this.latest.scope;
  }

  /**
   * Finds the caller of a request by its bearer token.
   *
   * @param scope what the caller wants to do; by default, create plants
   * @throws the same errors as {@link canActivate}
   */
  authenticate(request: IncomingMessage, scope?: Scope): Caller | Promise<Caller> {
    const caller = this.verifier.verify(BearerToken.fromRequest(request), scope);
    return caller instanceof Promise ? caller.then(known) : known(caller);
  }
}

function known(caller: Caller | undefined): Caller {
  if (caller === undefined) throw new InvalidTokenError();
  return caller;
}

function admit(request: GuardedRequest, caller: Caller): true {
  request.caller = caller;
  return true;
}
