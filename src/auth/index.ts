export { acceptsNothing, authFaults, type AuthOptions } from './auth.options';
export { BearerGuard } from './bearer.guard';
export { BearerToken, makeToken, tokenDigest } from './bearer-token';
export { createTokenVerifier } from './create-token-verifier';
export { TokenFileError } from './token-file';
export { digestOfEntry, entryOfDigest } from './token-list';
export { type Caller, type Finding, TokenVerifier } from './token-verifier';
