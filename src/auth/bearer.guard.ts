import type { IncomingMessage } from 'node:http';
import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { InsufficientScopeError, InvalidTokenError, MissingCredentialsError } from '../errors';
import { fieldValues, type HostRequest, nodeRequest } from '../http';
import { hashToken } from './listed-token';
import { type Caller, type Scope, TokenVerifier } from './token-verifier';

/** RFC 9110 section 11.4 */
const BEARER_SCHEME = /^bearer(?:[ \t]|$)/i;
/** RFC 6750 section 2.1: exactly one token, after one or more spaces. */
const BEARER = /^bearer +([A-Za-z0-9._~+/-]+=*)$/i;

/** The bearer token of a request. It stays hidden when this object is logged or serialised. */
export class BearerToken {
  readonly #text: string;
  #digest: string | undefined;

  /** @param text a token of the syntax of RFC 6750 section 2.1 */
  constructor(text: string) {
    this.#text = text;
  }

  /**
   * @throws MissingCredentialsError when there is no `Authorization` field of the Bearer scheme
   * @throws InvalidTokenError when the field is malformed or repeated, or the query has a token too:
   *   RFC 6750 section 2 allows one method per request
   */
  static fromRequest(request: IncomingMessage): BearerToken {
    const fields = fieldValues(request, 'authorization');
    const text = fields.length === 1 ? BEARER.exec(fields[0] ?? '')?.[1] : undefined;
    if (text === undefined) {
      if (!fields.some((field) => BEARER_SCHEME.test(field))) throw new MissingCredentialsError();
      throw new InvalidTokenError(
        'The request must have exactly one Authorization header, of the form "Bearer TOKEN".',
      );
    }
    const { url = '' } = request;
    if (url.includes('?') && new URLSearchParams(url.slice(url.indexOf('?'))).has('access_token')) {
      throw new InvalidTokenError(
        'The token must be in the Authorization header only, not in the query.',
      );
    }
    return new BearerToken(text);
  }

  get text(): string {
    return this.#text;
  }

  get digest(): string {
    return (this.#digest ??= hashToken(this.#text));
  }
}

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

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const request = context.switchToHttp().getRequest<GuardedRequest>();
    const scope = this.reflector.get(RequiredScope, context.getHandler());
    const admit = (caller: Caller): boolean => {
      request.caller = caller;
      return true;
    };
    const refuse = (error: unknown): never => {
      // For the log of the refusal.
      if (error instanceof InsufficientScopeError) request.caller = error.caller;
      throw error;
    };
    try {
      const caller = this.authenticate(nodeRequest(request), scope);
      return caller instanceof Promise ? caller.then(admit, refuse) : admit(caller);
    } catch (error) {
      return refuse(error);
    }
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
