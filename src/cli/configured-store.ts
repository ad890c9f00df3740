import { existsSync, realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { Logger } from '@nestjs/common';
import { PlantStoreError } from '../plants/errors/errors';
import { OperatorError } from '../plants/errors/operator.error';
import { matchKind } from '../plants/store/store-location';
import { openRepository } from '../plants/store/stores';
import type { Plant } from '../plants/plant/plant';
import { pagesOf, type PlantsRepository } from '../plants/plants.repository';
import { readDatabase } from '../server/settings/database.settings';
import { requireFile } from './new-file';
import { isReadOnlyStore, readPages } from './sqlite.maintenance';
import { UsageError } from './usage.error';

/** The advice to an operator whose store does not exist. */
export const STORE_ADVICE = 'Set DATABASE_URL or DATABASE_URL_FILE to an existing store.';

type Pages = AsyncIterable<readonly Plant[]> | Iterable<readonly Plant[]>;

/**
 * Runs the work with all plants of the configured store, which must exist, in id order. The store is opened like that
 * of the service, except a SQLite file in a directory that cannot be written, where the service would not start.
 * @throws OperatorError when the store cannot be used, or fails during the work
 */
export async function withPages(work: (pages: Pages) => Promise<void>): Promise<void> {
  const pages = matchKind<Pages | undefined>(readDatabase(process.env), {
    sqlite: (path) => {
      const file = resolve(path);
      requireFile(file, STORE_ADVICE);
      return isReadOnlyStore(file) ? readPages(file) : undefined;
    },
    // Opening a store creates a missing file, but not a PostgreSQL database.
    postgres: () => undefined,
  });
  if (pages) await work(pages);
  else await withRepository((repository) => work(pagesOf(repository)));
}

/**
 * Opens the store that the environment configures, or creates it, runs the work, and closes the store.
 * @throws OperatorError when the store cannot be used, or fails during the work
 */
export async function withRepository(
  work: (repository: PlantsRepository) => Promise<void>,
): Promise<void> {
  // Log lines would mix with exported plants on standard output. Errors carry the same information.
  Logger.overrideLogger(false);
  const location = readDatabase(process.env);
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
  return matchKind<string>(readDatabase(process.env), {
    sqlite: (path) => (existsSync(path) ? realpathSync(path) : resolve(path)),
    postgres: () => {
      throw new UsageError(
        'This command is for SQLite files. For PostgreSQL, use pg_dump and pg_restore.',
      );
    },
  });
}

/** Returns the cause of an error, on which an operator can act: its own message is for clients. */
export function formatStoreError({ cause, message }: PlantStoreError): string {
  return cause instanceof Error ? cause.message : message;
}
