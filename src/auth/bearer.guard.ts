import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { InvalidTokenError } from '../errors';
import { type HostRequest, nodeRequest } from '../http';
import { BearerToken } from './bearer-token';
import { type Caller, type Finding, TokenVerifier } from './token-verifier';

type GuardedRequest = HostRequest & { caller?: Caller };

/** Admits requests with a good bearer token, RFC 6750, and puts the caller on the request. */
@Injectable()
export class BearerGuard implements CanActivate {
  constructor(private readonly verifier: TokenVerifier) {}

  /**
   * @throws MissingCredentialsError when the request has no bearer credentials
   * @throws InvalidTokenError when it has some that are no good
   * @throws InsufficientScopeError when they are good, but not for this
   * @throws UnavailableError when they cannot be judged now
   */
  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const request = context.switchToHttp().getRequest<GuardedRequest>();
    const finding = this.verifier.verify(BearerToken.of(nodeRequest(request)));
    return finding instanceof Promise
      ? finding.then((caller) => admit(request, caller))
      : admit(request, finding);
  }
}

function admit(request: GuardedRequest, caller: Finding): true {
  if (caller === undefined) throw new InvalidTokenError();
  request.caller = caller;
  return true;
}
