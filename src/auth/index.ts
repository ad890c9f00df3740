export * from './auth.options';
export { BearerGuard, BearerToken, RequiredScope } from './bearer.guard';
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
