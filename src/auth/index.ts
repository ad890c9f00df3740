export { BearerGuard } from './bearer.guard';
export { StaticTokenVerifier } from './static-token-verifier';
export { configuredTokenDigest, generateToken, tokenDigest } from './token-digest';
export { type Caller, TokenVerifier } from './token-verifier';
