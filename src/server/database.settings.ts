import { OperatorError, describeUnusablePath, findUrlFault } from '../plants/program';
import { readSettingFile } from './env-file';

type DatabaseUrl = { readonly sqlite: string } | { readonly postgres: string };

/**
 * Where the plants are: a SQLite file, or the connection URL of a PostgreSQL database. A URL in a file is
 * read again whenever it is asked for, because it may have been replaced.
 */
export type DatabaseSettings =
  DatabaseUrl | { readonly postgres: { readonly connectionString: string } };

export const DEFAULT_DATABASE: DatabaseUrl = { sqlite: 'data/plants.db' };

/**
 * Reads `DATABASE_URL` or `DATABASE_URL_FILE`, and nothing else of an environment.
 *
 * @throws OperatorError when it is invalid; the message never shows a secret
 */
export function readDatabase(environment: NodeJS.ProcessEnv): DatabaseSettings {
  const database = readUrl(environment);
  if ('sqlite' in database || readText(environment.DATABASE_URL_FILE) === undefined) {
    return database;
  }
  return {
    postgres: {
      get connectionString() {
        const present = readUrl(environment);
        if ('postgres' in present) return present.postgres;
        throw new OperatorError('DATABASE_URL_FILE names SQLite now: restart to use it');
      },
    },
  };
}

function readUrl(environment: NodeJS.ProcessEnv): DatabaseUrl {
  const file = readText(environment.DATABASE_URL_FILE);
  const url = readText(environment.DATABASE_URL);
  try {
    if (file === undefined) return url === undefined ? DEFAULT_DATABASE : parseDatabaseUrl(url);
    if (url !== undefined) throw new Error('and DATABASE_URL must not both be set');
    return parseDatabaseUrl(readSettingFile(file).trim());
  } catch (cause) {
    const name = file === undefined ? 'DATABASE_URL' : 'DATABASE_URL_FILE';
    throw new OperatorError(`${name} ${(cause as Error).message}`);
  }
}

function readText(value = ''): string | undefined {
  const text = value.trim();
  return text === '' ? undefined : text;
}

/** @throws Error when the URL is invalid; the message continues a sentence that begins with its name */
function parseDatabaseUrl(text: string): DatabaseUrl {
  const [, path] = /^sqlite:(?!.*\0)(.*)$/s.exec(text) ?? [];
  const fault = path === undefined ? findUrlFault(text) : describeUnusablePath(path);
  if (fault !== undefined)
    throw new Error(fault.replace(/^must be (?=postgres)/, '$&sqlite:PATH, or '));
  if (path?.includes('?')) throw new Error('must not have parameters after sqlite:PATH');
  return path === undefined ? { postgres: text } : { sqlite: path };
}
