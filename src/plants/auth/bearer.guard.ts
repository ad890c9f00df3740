import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { InsufficientScopeError } from '../errors/errors';
import { type HostRequest, nodeRequest, notesOf } from '../http/request';
import { BearerToken } from './bearer-token';
import type { Scope } from './caller';
import { TokenVerifier } from './token-verifier';

/** Declares the scope that a token needs for a route: by default, `create`. */
export const RequiredScope = Reflector.createDecorator<Scope>();

/**
 * Admits requests with a valid bearer token, RFC 6750, that has the scope of the route, and notes the caller.
 */
@Injectable()
export class BearerGuard implements CanActivate {
  constructor(
    private readonly verifier: TokenVerifier,
    private readonly reflector: Reflector,
  ) {}

  /** @throws PlantStoreError unless the request has a valid bearer token with the scope */
  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<HostRequest>();
    const declared = this.reflector.get<Scope | undefined>(RequiredScope.KEY, context.getHandler());
    const { caller, missingScopes } = await this.verifier.verify(
      BearerToken.fromRequest(nodeRequest(request)),
    );
    // Set before the scope check, so that the access log shows the caller of a 403 too.
    notesOf(request).caller = caller;
    const required = missingScopes[declared ?? 'create'];
    if (required !== undefined) throw new InsufficientScopeError(required);
    return true;
  }
}
