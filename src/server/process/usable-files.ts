import { accessSync, constants, existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { Logger } from '@nestjs/common';
import { openTokenFile } from '../../plants/auth/token-list';
import { OperatorError, OptionError } from '../../plants/errors/operator.error';
import { assertUsableFile } from '../../plants/store/sqlite/sqlite.files';
import { readTls } from '../http/tls';
import { formatForOperator, type Settings } from '../settings/environment';

/**
 * Checks the files of the settings before the service opens them. Logs nothing and creates no files.
 * @throws OperatorError with a line for each file that cannot be used
 */
export function assertUsableFiles({ auth, tls, database }: Settings): void {
  // The service logs the same warnings when it opens the files.
  Logger.overrideLogger(false);
  const problems = [...findProblem(auth.tokensFile, openTokenFile), ...findProblem(tls, readTls)];
  if (problems.length === 0) return;
  // In a start without other problems, the store itself reports why it cannot be opened.
  const path = 'sqlite' in database ? resolve(database.sqlite) : undefined;
  throw new OperatorError([...problems, ...findProblem(path, assertUsablePath)].join('\n'));
}

function findProblem<T>(setting: T | undefined, check: (setting: T) => unknown): string[] {
  try {
    if (setting !== undefined) check(setting);
    return [];
  } catch (error) {
    return [String(formatForOperator(error))];
  }
}

function assertUsablePath(file: string): void {
  try {
    assertUsableFile(file);
    // The service creates missing directories.
    let existing = file;
    while (!existsSync(existing)) existing = dirname(existing);
    accessSync(existing, existing === file ? constants.W_OK : constants.W_OK | constants.X_OK);
    if (existing !== file) return;
    // `immutable` makes SQLite ignore the write-ahead log, take no locks and create no files.
    const url = new URL('?immutable=1', pathToFileURL(file));
    new DatabaseSync(url, { readOnly: true }).exec('PRAGMA schema_version');
  } catch (error) {
    const reason = (error as Error).message;
    throw new OptionError('sqlite', `sqlite names ${file}, which cannot be used: ${reason}.`);
  }
}
