import type { IncomingMessage } from 'node:http';
import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { InsufficientScopeError, InvalidTokenError } from '../errors';
import { type HostRequest, nodeRequest } from '../http';
import { BearerToken } from './bearer-token';
import { type Caller, type Scope, TokenVerifier } from './token-verifier';

type GuardedRequest = HostRequest & { caller?: Caller };

/** Declares the scope that a token needs for a route: by default, `create`. */
export const RequiredScope = Reflector.createDecorator<Scope>();

/**
 * Admits requests with a valid bearer token, RFC 6750, that has the scope of the route, and sets the
 * `caller` property of the request.
 */
@Injectable()
export class BearerGuard implements CanActivate {
  constructor(
    private readonly verifier: TokenVerifier,
    private readonly reflector: Reflector,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<GuardedRequest>();
    const scope = this.reflector.get(RequiredScope, context.getHandler());
    try {
      request.caller = await this.authenticate(nodeRequest(request), scope);
    } catch (error) {
      // For the log of the refusal.
      if (error instanceof InsufficientScopeError) request.caller = error.caller;
      throw error;
    }
    return true;
  }

  /**
   * Finds the caller of a request by its bearer token. Without a promise where that is possible: the
   * server must know it before the next request on the connection is parsed.
   *
   * @param scope what the caller wants to do; by default, create plants
   * @throws MissingCredentialsError when the request has no bearer credentials
   * @throws InvalidTokenError when the bearer token is invalid
   * @throws InsufficientScopeError when the token is valid but lacks the required scope
   * @throws UnavailableError when the token cannot be verified now
   */
  authenticate(request: IncomingMessage, scope?: Scope): Caller | Promise<Caller> {
    const caller = this.verifier.verify(BearerToken.fromRequest(request), scope);
    return caller instanceof Promise ? caller.then(assertFound) : assertFound(caller);
  }
}

function assertFound(caller: Caller | undefined): Caller {
  if (caller === undefined) throw new InvalidTokenError();
  return caller;
}
