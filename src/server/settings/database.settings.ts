import { isProduction } from '../../plants/environment';
import { OperatorError, OptionError } from '../../plants/errors/operator.error';
import { findUrlError } from '../../plants/store/postgres/postgres.url';
import { findPathError } from '../../plants/store/sqlite/sqlite.settings';
import type { StoreLocation } from '../../plants/store/stores';
import { readSettingFile } from './settings-file';
import { readText } from './variable-text';
import { DATABASE, readVariables } from './variables';

export function databaseVariableName(environment: NodeJS.ProcessEnv): string {
  return environment.DATABASE_URL_FILE?.trim() ? 'DATABASE_URL_FILE' : 'DATABASE_URL';
}

/**
 * Reads `DATABASE_URL` or `DATABASE_URL_FILE`, one of which must be set in production.
 * @throws OperatorError when the variable is invalid; the message never shows a secret
 */
export function readDatabase(environment: NodeJS.ProcessEnv): StoreLocation {
  const errors: string[] = [];
  const { url, file } = readVariables(DATABASE, environment, errors);
  if (file !== undefined && environment.DATABASE_URL?.trim()) {
    errors.push('DATABASE_URL_FILE and DATABASE_URL must not both be set.');
  }
  if (file === undefined && !environment.DATABASE_URL?.trim() && isProduction(environment)) {
    errors.push('DATABASE_URL or DATABASE_URL_FILE must be set when NODE_ENV is production.');
  }
  if (errors.length > 0) throw new OperatorError(errors.join('\n'));
  if (file === undefined) return parseDatabaseUrl(url, 'DATABASE_URL');
  const readFile = (): StoreLocation => {
    const content = readSettingFile(file, 'DATABASE_URL_FILE');
    const text = readText('DATABASE_URL_FILE', { DATABASE_URL_FILE: content });
    return parseDatabaseUrl(text ?? '', 'DATABASE_URL_FILE');
  };
  const location = readFile();
  if (!('postgres' in location)) return location;
  return {
    // Read again for each attempt to connect, because the file may have been replaced.
    postgres: () => {
      const { postgres } = readFile() as { postgres?: string };
      if (postgres !== undefined) return postgres;
      throw new OperatorError(
        'DATABASE_URL_FILE now contains the URL of another kind of store: restart the service to use it.',
      );
    },
  };
}

/** @throws OperatorError when the URL is invalid */
function parseDatabaseUrl(text: string, variable: string): StoreLocation {
  // The scheme, and what follows it. Neither the system nor SQLite accepts U+0000 in a path.
  const [, scheme, path = ''] = /^(sqlite|postgres|postgresql):([^\0]*)$/.exec(text) ?? [];
  if (scheme === undefined) {
    throw new OperatorError(
      `${variable} must be sqlite:PATH, or postgres://USER:PASSWORD@HOST:PORT/DATABASE.`,
    );
  }
  const isSqlite = scheme === 'sqlite';
  const error = isSqlite ? findPathError(path) : findUrlError(text);
  if (error !== undefined) throw new OptionError(isSqlite ? 'sqlite' : 'postgres', error);
  if (!isSqlite) return { postgres: text };
  if (!path.includes('?')) return { sqlite: path };
  throw new OptionError('sqlite', 'sqlite must not have parameters after its path.');
}
