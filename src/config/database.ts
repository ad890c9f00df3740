import { parse } from 'pg-connection-string';
import { OperatorError } from '../errors';
import { describeUrlFault, urlPerHost } from '../plants/persistence';
import { describeUnusablePath } from '../plants/persistence/sqlite';
import { readSettingFile } from './variables';

type DatabaseUrl = { readonly sqlite: string } | { readonly postgres: string };

/**
 * Where the plants are: a SQLite file, or the connection URL of a PostgreSQL database. The password of
 * a URL in a file is read again for each session, because it may have been replaced.
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
  try {
    if (file === undefined) return url === undefined ? DEFAULT_DATABASE : parseDatabaseUrl(url);
    if (url !== undefined) throw new Error('and DATABASE_URL must not both be set');
    const settings = parseDatabaseUrl(readSettingFile(file).trim());
    if ('sqlite' in settings || !readPassword(settings.postgres)) return settings;
    const { postgres: connectionString } = settings;
    return {
      postgres: { connectionString, password: () => passwordOf(readDatabase(environment)) },
    };
  } catch (cause) {
    const name = file === undefined ? 'DATABASE_URL' : 'DATABASE_URL_FILE';
    throw new OperatorError(`${name} ${(cause as Error).message}`);
  }
}

function passwordOf(database: DatabaseSettings): string {
  const { postgres } = { postgres: '', ...database };
  return readPassword(typeof postgres === 'string' ? postgres : postgres.connectionString);
}

/** As the driver reads it: it accepts a percent sign that encodes nothing. */
function readPassword(url: string): string {
  const [first = ''] = urlPerHost(url) ?? [];
  return parse(first, { useLibpqCompat: true }).password ?? '';
}

function readText(value = ''): string | undefined {
  const text = value.trim();
  return text === '' ? undefined : text;
}

/** @throws Error when the URL is invalid; the message continues a sentence that begins with its name */
function parseDatabaseUrl(text: string): DatabaseUrl {
  const [, path] = /^sqlite:(?!.*\0)(.*)$/s.exec(text) ?? [];
  const fault = path === undefined ? describeUrlFault(text) : describeUnusablePath(path);
  if (fault !== undefined) throw new Error(fault);
  if (path?.includes('?')) throw new Error('must not have parameters after sqlite:PATH');
  if (path !== undefined) return { sqlite: path };
  if (urlPerHost(text)) return { postgres: text };
  throw new Error(
    'must be sqlite:PATH, or postgres://USER:PASSWORD@HOST:PORT/DATABASE. Special characters in USER and PASSWORD must be percent-encoded, and sslmode, if set, must be disable, require, verify-ca or verify-full',
  );
}
