import { existsSync, realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { Logger } from '@nestjs/common';
import { PlantStoreError } from '../plants/errors/errors';
import { OperatorError } from '../plants/errors/operator.error';
import { openRepository } from '../plants/store/stores';
import type { PlantsRepository } from '../plants/plants.repository';
import { readDatabase } from '../server/settings/database.settings';
import { requireFile } from './new-file';
import { UsageError } from './usage.error';

export const STORE_ADVICE = 'Set DATABASE_URL or DATABASE_URL_FILE to an existing store.';

/**
 * Opens the store that the environment configures, runs the work, and closes the store.
 * @param file whether the SQLite file must exist, or is created if it does not exist
 * @throws OperatorError when the store cannot be used, or fails during the work
 */
export async function withRepository(
  file: 'exists' | 'create',
  work: (repository: PlantsRepository) => Promise<void>,
): Promise<void> {
  // Log lines would mix with exported plants on standard output. Errors carry the same information.
  Logger.overrideLogger(false);
  const location = readDatabase(process.env);
  if (file === 'exists' && !('postgres' in location)) {
    requireFile(resolve(location.sqlite), STORE_ADVICE);
  }
  const repository = await openRepository(location);
  try {
    const failure = repository.currentFailure();
    if (failure) throw new OperatorError(`The database cannot be used: ${failure.message}`);
    await work(repository);
  } catch (error) {
    if (!(error instanceof PlantStoreError)) throw error;
    throw new OperatorError(formatStoreError(error), { cause: error });
  } finally {
    await repository.onApplicationShutdown();
  }
  // The store may fail while it closes.
  const failure = repository.currentFailure();
  if (failure?.reach === 'process') throw failure;
}

/**
 * Returns the path of the configured SQLite file: absolute, and without symbolic links if the file exists.
 * @throws UsageError when PostgreSQL is configured
 */
export function requireSqlitePath(): string {
  const store = readDatabase(process.env);
  if ('sqlite' in store) {
    return existsSync(store.sqlite) ? realpathSync(store.sqlite) : resolve(store.sqlite);
  }
  throw new UsageError(
    'This command is for SQLite files. For PostgreSQL, use pg_dump and pg_restore.',
  );
}

export function formatStoreError({ cause, message }: PlantStoreError): string {
  return cause instanceof Error ? cause.message : message;
}
