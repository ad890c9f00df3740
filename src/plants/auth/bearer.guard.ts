import type { IncomingMessage } from 'node:http';
import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { InsufficientScopeError, InvalidTokenError, PlantStoreError } from '../errors/errors';
import { headerValues, type HostRequest, nodeRequest, notesOf } from '../http/request';
import type { Scope } from './scopes';
import { TokenVerifier } from './token-verifier';

/** RFC 6750 section 2.1: exactly one token, after one or more spaces. */
const BEARER = /^bearer +([A-Za-z0-9._~+/-]+=*)$/i;

/** Declares the scope that a token needs for a route: by default, `create`. */
export const RequiredScope = Reflector.createDecorator<Scope>();

/** Admits requests with a valid bearer token, RFC 6750, that has the scope of the route, and notes the caller. */
@Injectable()
export class BearerGuard implements CanActivate {
  constructor(
    private readonly verifier: TokenVerifier,
    private readonly reflector: Reflector,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<HostRequest>();
    const declared = this.reflector.get<Scope | undefined>(RequiredScope.KEY, context.getHandler());
    const token = readBearerToken(nodeRequest(request));
    const { caller, missingScopes } = await this.verifier.verify(token);
    // Set before the scope check, so that the access log shows the caller of a 403 too.
    notesOf(request).caller = caller;
    const required = missingScopes[declared ?? 'create'];
    if (required !== undefined) throw new InsufficientScopeError(required);
    return true;
  }
}

/** @throws PlantStoreError when there is no `Authorization: Bearer` header, or it is malformed or repeated */
function readBearerToken(request: IncomingMessage): string {
  const values = headerValues(request, 'authorization');
  const token = values.length === 1 ? BEARER.exec(values[0] ?? '')?.[1] : undefined;
  if (token !== undefined) return token;
  // RFC 9110 section 11.4: the scheme in any case, then white space or nothing.
  if (!values.some((value) => /^bearer(?:[ \t]|$)/i.test(value))) {
    throw new PlantStoreError('missingCredentials');
  }
  throw new InvalidTokenError(
    'The request must have exactly one Authorization header, of the form "Bearer TOKEN".',
  );
}
