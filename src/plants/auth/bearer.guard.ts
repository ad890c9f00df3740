import type { IncomingMessage } from 'node:http';
import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { InsufficientScopeError, InvalidTokenError } from '../errors/errors';
import { type HostRequest, nodeRequest } from '../http/node-request';
import { BearerToken } from './bearer-token';
import type { Caller } from './caller';
import { type Scope, TokenVerifier } from './token-verifier';

/** Declares the scope that a token needs for a route: by default, `create`. */
export const RequiredScope = Reflector.createDecorator<Scope>();

/**
 * Admits requests with a valid bearer token, RFC 6750, that has the scope of the route, and sets the
 * `caller` property of the request.
 */
@Injectable()
export class BearerGuard implements CanActivate {
  /** By the handler of a route, so that they are not reflected at each request. */
  private readonly scopes = new WeakMap<object, Scope>();

  constructor(
    private readonly verifier: TokenVerifier,
    private readonly reflector: Reflector,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<HostRequest>();
    const scope = this.scopeOf(context.getHandler());
    try {
      request.caller = await this.authenticate(nodeRequest(request), scope);
      return true;
    } catch (error) {
      // For the log of the refusal.
      if (error instanceof InsufficientScopeError) request.caller = error.caller;
      throw error;
    }
  }

  private scopeOf(handler: Parameters<Reflector['get']>[1]): Scope {
    const known = this.scopes.get(handler);
    if (known !== undefined) return known;
    const declared = this.reflector.get<Scope | undefined>(RequiredScope.KEY, handler);
    const scope = declared ?? 'create';
    this.scopes.set(handler, scope);
    return scope;
  }

  /**
   * Finds the caller of a request by its bearer token.
   *
   * @param scope what the caller wants to do; by default, create plants
   * @throws MissingCredentialsError when the request has no bearer credentials
   * @throws InvalidTokenError when the bearer token is invalid
   * @throws InsufficientScopeError when the token is valid but lacks the required scope
   * @throws UnavailableError when the token cannot be verified now
   */
  async authenticate(request: IncomingMessage, scope?: Scope): Promise<Caller> {
    const caller = await this.verifier.verify(BearerToken.fromRequest(request), scope);
    if (caller === undefined) throw new InvalidTokenError();
    return caller;
  }
}
