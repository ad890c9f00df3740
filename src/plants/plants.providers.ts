import { resolve } from 'node:path';
import { Logger } from '@nestjs/common';
import { isAuthConfigured } from './auth/auth.options';
import { makeToken } from './auth/listed-token';
import { TokenVerifier } from './auth/token-verifier';
import { openRepository } from './persistence/open-repository';
import type { PlantsModuleExtras, PlantsModuleOptions } from './plants.options';
import type { PlantsRepository } from './plants.repository';

const DEFAULT_BODY_LIMIT = 2 ** 20;
const DEFAULT_FILE = 'data/plants.db';

/**
 * @throws Error in production when the options name no store
 * @throws StoreOpenError when the store cannot be used
 */
export async function openStore({
  sqlite,
  postgres,
}: PlantsModuleOptions): Promise<PlantsRepository> {
  if (sqlite === undefined && postgres === undefined) {
    refuseInProduction('"sqlite", "postgres" or "repository" to say where plants are stored');
  }
  const file = sqlite ?? DEFAULT_FILE;
  const repository = await openRepository(file, postgres);
  if (postgres === undefined) {
    // For PostgreSQL its sessions say so, which know the address.
    new Logger('PlantStore').log(`Plants are stored in the SQLite file ${resolve(file)}`);
  }
  return repository;
}

/** @throws Error in production, where nothing important has a default */
function refuseInProduction(missing: string): void {
  if (process.env.NODE_ENV !== 'production') return;
  throw new Error(`PlantsModule: in production (NODE_ENV), set ${missing}.`);
}

/** @throws TypeError when the limit is not a number of bytes */
export function bodyLimitOf({ bodyLimit = DEFAULT_BODY_LIMIT }: PlantsModuleOptions): number {
  if (Number.isSafeInteger(bodyLimit) && bodyLimit > 0) return bodyLimit;
  throw new TypeError('PlantsModule: bodyLimit must be a number of bytes, 1 or more.');
}

/** @throws Error when the options are invalid or accept no token, or in production are not given */
export function createVerifier(
  { auth }: PlantsModuleOptions,
  { guard }: PlantsModuleExtras,
): TokenVerifier | undefined {
  if (guard !== undefined) return undefined;
  if (auth && !isAuthConfigured(auth)) {
    throw new TypeError(
      'PlantsModule: "auth" accepts no token: it needs "tokens", "tokensFile" or "issuer".',
    );
  }
  if (auth) return new TokenVerifier(auth);
  refuseInProduction('"auth" or "guard" to say who may create plants');
  const token = makeToken();
  new Logger('PlantsModule').warn(
    `Neither "auth" nor "guard" is set. This token is valid until shutdown: Bearer ${token}`,
  );
  return new TokenVerifier({ tokens: [token] });
}
