import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { InvalidTokenError } from '../errors';
import { fieldValues, type HostRequest, nodeRequest } from '../http/node-request';
import { bearerToken } from './bearer-token';
import { type Caller, TokenVerifier } from './token-verifier';

/** Admits requests with a good bearer token, RFC 6750, and puts the caller on the request. */
@Injectable()
export class BearerGuard implements CanActivate {
  constructor(private readonly verifier: TokenVerifier) {}

  /**
   * @throws MissingCredentialsError when the request has no bearer credentials
   * @throws InvalidTokenError when it has some that are no good
   */
  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<HostRequest & { caller?: Caller }>();
    const token = bearerToken(fieldValues(nodeRequest(request), 'authorization'));
    const caller = await this.verifier.verify(token);
    if (caller === undefined) throw new InvalidTokenError();
    request.caller = caller;
    return true;
  }
}
