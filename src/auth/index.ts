export { acceptsNothing, authFaults, type AuthOptions } from './auth.options';
export { BearerGuard } from './bearer.guard';
export { BearerToken } from './bearer-token';
export { createTokenVerifier } from './create-token-verifier';
export { isTokenName, parseTokenFile, TokenFileError } from './token-file';
export { digestOfEntry, entryOfDigest, makeToken, tokenDigest } from './token-digest';
export { type Caller, type Finding, TokenVerifier } from './token-verifier';
