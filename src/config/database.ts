import { OperatorError } from '../errors';
import { describeUrlFault, readPassword, urlPerHost } from '../plants/persistence';
import { describeUnusablePath } from '../plants/persistence/sqlite';
import { readSettingFile } from './variables';

type DatabaseUrl = { readonly sqlite: string } | { readonly postgres: string };

/**
 * Where the plants are: a SQLite file, or the connection URL of a PostgreSQL database. If that is in a
 * file, its password is read anew for each session, because it may have been replaced.
 */
export type DatabaseSettings =
  DatabaseUrl | { readonly postgres: { connectionString: string; password: () => string } };

export const DEFAULT_DATABASE: DatabaseSettings = { sqlite: 'data/plants.db' };

/**
 * Reads `DATABASE_URL` or `DATABASE_URL_FILE`, and nothing else of an environment.
 *
 * @throws OperatorError when it is invalid; the message never shows a secret
 */
export function readDatabase(environment: NodeJS.ProcessEnv): DatabaseSettings {
  const file = readText(environment.DATABASE_URL_FILE);
  const url = readText(environment.DATABASE_URL);
  if (file === undefined) {
    return url === undefined ? DEFAULT_DATABASE : parseDatabaseUrl('DATABASE_URL', () => url);
  }
  const read = (): DatabaseUrl =>
    parseDatabaseUrl('DATABASE_URL_FILE', () => {
      if (url !== undefined) throw new Error('and DATABASE_URL must not both be set');
      return readSettingFile(file).trim();
    });
  const settings = read();
  if ('sqlite' in settings || passwordOf(settings) === '') return settings;
  const { postgres: connectionString } = settings;
  return { postgres: { connectionString, password: () => passwordOf(read()) } };
}

function passwordOf(url: DatabaseUrl): string {
  return 'postgres' in url ? (readPassword(url.postgres) ?? '') : '';
}

function readText(value = ''): string | undefined {
  const text = value.trim();
  return text === '' ? undefined : text;
}

/**
 * @param name of the variable, for the message
 * @throws OperatorError when the URL cannot be read, or is invalid
 */
function parseDatabaseUrl(name: string, read: () => string): DatabaseUrl {
  try {
    const text = read();
    const [, path] = /^sqlite:(?!.*\0)(.*)$/s.exec(text) ?? [];
    const fault = path === undefined ? describeUrlFault(text) : describeUnusablePath(path);
    if (fault !== undefined) throw new Error(fault);
    if (path?.includes('?')) throw new Error('must not have parameters after sqlite:PATH');
    if (path !== undefined) return { sqlite: path };
    if (urlPerHost(text)) return { postgres: text };
    throw new Error(
      'must be sqlite:PATH, or postgres://USER:PASSWORD@HOST:PORT/DATABASE. Special characters in USER and PASSWORD must be percent-encoded, and sslmode, if set, must be disable, require, verify-ca or verify-full',
    );
  } catch (cause) {
    throw new OperatorError(`${name} ${(cause as Error).message}`);
  }
}
