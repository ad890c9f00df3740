import { accessSync, constants, existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { Logger } from '@nestjs/common';
import { openTokenFile } from '../../plants/auth/token-list';
import { OperatorError, OptionError } from '../../plants/errors/operator.error';
import { assertUsableFile } from '../../plants/store/sqlite/sqlite.files';
import { readTls } from '../http/tls';
import { formatForOperator, type Settings } from './environment';

/**
 * Checks the files of the settings before the service opens them, so that a failed start reports all that cannot be
 * used. Logs nothing and creates no files.
 *
 * @throws OperatorError with one line per problem
 */
export function assertUsableFiles({ auth: { tokensFile }, tls, database }: Settings): void {
  // The service logs the same warnings when it opens the files.
  Logger.overrideLogger(false);
  const problems: string[] = [];
  const attempt = (check: () => unknown): void => {
    try {
      check();
    } catch (error) {
      problems.push(String(formatForOperator(error)));
    }
  };
  if (tokensFile !== undefined) attempt(() => openTokenFile(tokensFile));
  if (tls) attempt(() => readTls(tls));
  if (problems.length === 0) return;
  // In a start without other problems, the store itself reports why it cannot be opened.
  if ('sqlite' in database) {
    attempt(() => {
      assertUsablePath(resolve(database.sqlite));
    });
  }
  throw new OperatorError(problems.join('\n'));
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
    const { message } = error as Error;
    const sentence = `sqlite names the file ${file}, which cannot be used: ${message}.`;
    throw new OptionError('sqlite', sentence);
  }
}
