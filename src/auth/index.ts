export * from './auth.options';
export { BearerGuard, RequiredScope } from './bearer.guard';
export { BearerToken } from './bearer-token';
export { assertKeysOfIssuer, createTokenVerifier } from './create-token-verifier';
export { FileFollower } from './file-follower';
export {
  formatScopes,
  formatTokenEntry,
  hashToken,
  isScope,
  isTokenName,
  makeToken,
  parseTokenList,
} from './listed-token';
export { parseTokenFile, TokenFileError } from './token-file';
export { type Caller, identityOf, scopes, TokenVerifier } from './token-verifier';
