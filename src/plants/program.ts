/**
 * The second door of the package: what the server and the commands use beyond what a host needs.
 * `package.json` does not export it, so that no host depends on it.
 */
export * from './index';

// The server guards and answers with the parts of the module, also where no route of Nest is asked.
export {
  isAuthConfigured,
  type ServiceAuthOptions,
  validateAuthOptions,
  withTrialToken,
} from './auth/auth.options';
export { BearerGuard, RequiredScope } from './auth/bearer.guard';
export { identityOf, type RequestWithCaller, scopes } from './auth/caller';
export { assertKeysOfIssuer, TokenVerifier } from './auth/token-verifier';
export { errorResponses } from './dto/error.dto';
export {
  BodyTooLargeError,
  type CatalogueEntry,
  MalformedRequestError,
  NotFoundError,
  NotImplementedError,
  NotJsonError,
} from './errors/errors';
export * from './errors/operator.error';
export { ErrorFilter, securityHeaders } from './http/error.filter';
export { LogThrottle, requestFields } from './http/failure-log';
export { isLoopback } from './http/loopback';
export { fieldValues, type HostRequest, pathOf } from './http/request';
export { IDEMPOTENT_REPLAYED } from './idempotency-key';
export { type BatchEvent, batchChannel } from './plants.channels';
export { SCHEMA_PREFIX } from './swagger-decorators';

// Settings of the server are options of the module, with other names.
export { FileFollower } from './auth/file-follower';
export { findNearMatch } from './near-match';
export { DEFAULTS, isProduction } from './plants.options';
export { findUrlFault } from './persistence/postgres/postgres.url';
export { describeUnusablePath } from './persistence/sqlite/sqlite.settings';

// Commands write token files, and read plants by the rules of the route.
export { formatListedToken, isTokenName, parseTokenList } from './auth/listed-token';
export { createToken, parseTokenFile } from './auth/token-file';
export { parseCandidate, toNewPlant } from './new-plant';
export { contentOf, hasSameContent } from './plant';
export { pagesOf } from './plants.repository';

// Commands use the store as the service does, and maintain SQLite files.
export { openRepository } from './persistence/open-repository';
export { describePostgres } from './persistence/postgres/postgres.maintenance';
export { makeDirectory, syncDirectory } from './persistence/sqlite/sqlite.files';
export * from './persistence/sqlite/sqlite.maintenance';
