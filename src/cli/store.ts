import { existsSync, realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { Logger } from '@nestjs/common';
import { PlantStoreError } from '../plants/errors/errors';
import { OperatorError, UsageError } from '../plants/errors/operator.error';
import { openRepository } from '../plants/persistence/stores';
import type { PlantsRepository } from '../plants/plants.repository';
import { databaseVariable, readDatabase } from '../server/settings/database.settings';
import { sizeOf } from './new-file';

/**
 * Opens the store that the environment names as the service does, and closes it after the work.
 *
 * @param file whether a SQLite file must exist, or is created when it is missing
 * @throws OperatorError when the store cannot be used, or fails during the work
 */
export async function withRepository(
  file: 'exists' | 'create',
  work: (repository: PlantsRepository) => Promise<void>,
): Promise<void> {
  // Log lines would stand among the plants on the standard output. Errors say the same.
  Logger.overrideLogger(false);
  const location = readDatabase(process.env);
  if ('sqlite' in location && file === 'exists') {
    sizeOf(
      resolve(location.sqlite),
      `Set ${databaseVariable(process.env)} to a store that exists.`,
    );
  }
  const repository = await openRepository(location);
  try {
    const fault = repository.currentFailure();
    if (fault) throw new OperatorError(`The database cannot be used: ${fault.message}`);
    await work(repository);
  } catch (error) {
    if (!(error instanceof PlantStoreError)) throw error;
    throw new OperatorError(reasonOf(error), { cause: error });
  } finally {
    await repository.onApplicationShutdown();
  }
}

/** The URL of the database in a line for a shell, which shows no password. */
export function urlInShell(): string {
  return databaseVariable(process.env) === 'DATABASE_URL'
    ? '"$DATABASE_URL"'
    : '"$(cat "$DATABASE_URL_FILE")"';
}

/**
 * Finds the SQLite file that `DATABASE_URL` names.
 *
 * @param line what to run instead for PostgreSQL
 * @returns its path, absolute and without symbolic links if it exists
 * @throws UsageError when the environment names a PostgreSQL database
 */
export function sqliteFile(line: string): string {
  const store = readDatabase(process.env);
  if ('postgres' in store) {
    throw new UsageError(`This command is for SQLite files. For PostgreSQL, run:\n  ${line}`);
  }
  return existsSync(store.sqlite) ? realpathSync(store.sqlite) : resolve(store.sqlite);
}

/** Why a store did not take or give plants, for an operator. */
export function reasonOf({ cause, message }: PlantStoreError): string {
  return cause instanceof Error ? cause.message : message;
}
