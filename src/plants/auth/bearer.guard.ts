import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { InsufficientScopeError } from '../errors/errors';
import { type HostRequest, nodeRequest } from '../http/request';
import { BearerToken } from './bearer-token';
import type { Scope } from './caller';
import { TokenVerifier } from './token-verifier';

/** By the method of a controller. Reading metadata of Nest would cost each request half a microsecond. */
const scopeOfRoute = new WeakMap<object, Scope>();

/** Declares the scope that a token needs for a route: by default, `create`. */
export function RequiredScope(scope: Scope): MethodDecorator {
  return (_target, _name, { value }: PropertyDescriptor) => {
    scopeOfRoute.set(value as object, scope);
  };
}

/**
 * Admits requests with a valid bearer token, RFC 6750, that has the scope of the route, and sets the
 * `caller` property of the request.
 */
@Injectable()
export class BearerGuard implements CanActivate {
  constructor(private readonly verifier: TokenVerifier) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<HostRequest>();
    await this.authenticate(request, scopeOfRoute.get(context.getHandler()));
    return true;
  }

  /**
   * Decides whether a request may go on, and sets its caller.
   *
   * @param scope what the request needs; by default, that of a creation
   * @throws PlantStoreError unless it has a valid bearer token with the scope
   */
  async authenticate(request: HostRequest, scope: Scope = 'create'): Promise<void> {
    const token = BearerToken.fromRequest(nodeRequest(request));
    const { caller, missing } = await this.verifier.verify(token);
    // Also for the log of a refusal.
    request.caller = caller;
    const required = missing[scope];
    if (required !== undefined) throw new InsufficientScopeError(required);
  }
}
