export {
  type AuthOptions,
  isAuthConfigured,
  type ServiceAuthOptions,
  validateAuthOptions,
} from './auth.options';
export { BearerGuard } from './bearer.guard';
export { BearerToken } from './bearer-token';
export { assertKeysOfIssuer, createTokenVerifier } from './create-token-verifier';
export { type Contents, FileFollower, type FollowerEvents } from './file-follower';
export {
  formatScopes,
  isScope,
  isScopeField,
  RequiredScope,
  type Scope,
  scopes,
  splitScopes,
} from './scope';
export { isTokenName, parseTokenFile, TokenFileError } from './token-file';
export { parseTokenEntry, formatTokenEntry, makeToken, hashToken } from './token-digest';
export { type Caller, identityOf, TokenVerifier } from './token-verifier';
