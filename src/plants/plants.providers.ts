import { Logger } from '@nestjs/common';
import { type AuthOptions, withTemporaryToken } from './auth/auth.options';
import { TokenVerifier } from './auth/token-verifier';
import { openRepository, type StoreLocation } from './persistence/stores';
import {
  checkOptions,
  DEFAULTS,
  isProduction,
  type PlantsModuleExtras,
  type PlantsModuleOptions,
} from './plants.options';
import type { PlantsRepository } from './plants.repository';

/** The validated options of the host, with defaults for those that are missing. */
export interface ResolvedOptions {
  /** The maximum size of a request body in bytes. */
  readonly bodyLimit: number;
  /** Undefined if a guard of the host protects the route. */
  readonly auth: AuthOptions | undefined;
  /** Unused if the host has its own repository. */
  readonly store: StoreLocation;
}

/**
 * Validates the options and adds defaults.
 *
 * @param options the options exactly as the host passes them or its factory returns them
 * @throws TypeError naming the invalid option
 * @throws Error in production when no store or no authentication is configured
 */
export function resolveOptions(
  options: PlantsModuleOptions,
  extras: PlantsModuleExtras,
): ResolvedOptions {
  const { sqlite, postgres, auth, bodyLimit } = checkOptions(options, extras);
  if (sqlite === undefined && postgres === undefined && extras.repository === undefined) {
    requireInProduction(
      '"sqlite", "postgres" or "repository" to configure where plants are stored',
    );
  }
  const needsAuth = auth === undefined && extras.guard === undefined;
  if (needsAuth) requireInProduction('"auth" or "guard" to configure who may create plants');
  return {
    bodyLimit: bodyLimit ?? DEFAULTS.bodyLimit,
    auth: needsAuth ? createTemporaryAuth() : auth,
    store: postgres === undefined ? { sqlite: sqlite ?? DEFAULTS.sqlite } : { postgres },
  };
}

/** @throws Error in production, where the store and the authentication have no default */
function requireInProduction(missing: string): void {
  if (!isProduction(process.env)) return;
  throw new Error(`PlantsModule: in production (NODE_ENV), set ${missing}.`);
}

/**
 * Creates a temporary token and prints it to standard error. It is not logged, because logs may be collected
 * and kept.
 */
function createTemporaryAuth(): AuthOptions {
  const { auth, temporaryToken } = withTemporaryToken({});
  new Logger('PlantsModule').warn(
    'Neither "auth" nor "guard" is set. A temporary token is printed to standard error.',
  );
  process.stderr.write(
    `PlantsModule: this token is valid until shutdown: Bearer ${temporaryToken}\n`,
  );
  return auth;
}

/** @throws OptionError when the token file cannot be used */
export function createVerifier({ auth = {} }: ResolvedOptions): TokenVerifier {
  return new TokenVerifier(auth);
}

/**
 * Opens the configured store.
 *
 * @throws StoreOpenError when the store cannot be used
 */
export function createRepository({ store }: ResolvedOptions): Promise<PlantsRepository> {
  return openRepository(store);
}
