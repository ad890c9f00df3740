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

/** The options of the host, checked, with a default for each that is missing. */
export interface ResolvedOptions {
  /** Bytes. */
  readonly bodyLimit: number;
  /** Undefined when a guard of the host decides. */
  readonly auth: AuthOptions | undefined;
  /** Unused when the host has a repository of its own. */
  readonly store: StoreLocation;
}

/**
 * @param given the options as the host or its factory gives them
 * @throws TypeError saying which is wrong
 * @throws Error in production when they name no store or accept no token
 */
export function resolveOptions(
  given: PlantsModuleOptions,
  extras: PlantsModuleExtras,
): ResolvedOptions {
  const { sqlite, postgres, auth, bodyLimit } = checkOptions(given, extras);
  if (sqlite === undefined && postgres === undefined && extras.repository === undefined) {
    refuseInProduction('"sqlite", "postgres" or "repository" to say where plants are stored');
  }
  const needsAuth = auth === undefined && extras.guard === undefined;
  if (needsAuth) refuseInProduction('"auth" or "guard" to say who may create plants');
  return {
    bodyLimit: bodyLimit ?? DEFAULTS.bodyLimit,
    auth: needsAuth ? createTemporaryAuth() : auth,
    store: postgres === undefined ? { sqlite: sqlite ?? DEFAULTS.sqlite } : { postgres },
  };
}

/** @throws Error in production, where nothing important has a default */
function refuseInProduction(missing: string): void {
  if (!isProduction(process.env)) return;
  throw new Error(`PlantsModule: in production (NODE_ENV), set ${missing}.`);
}

/** Prints the temporary token. It does not belong in a log, which may be collected and kept. */
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

/** @throws StoreOpenError when the store cannot be used */
export function openStore({ store }: ResolvedOptions): Promise<PlantsRepository> {
  return openRepository(store);
}
