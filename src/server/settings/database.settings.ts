import { OperatorError, describeUnusablePath, findUrlFault } from '../../plants/program';
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
  const url = environment.DATABASE_URL?.trim();
  const file = environment.DATABASE_URL_FILE?.trim();
  if (!file) return url ? parseDatabaseUrl(url, 'DATABASE_URL') : DEFAULT_DATABASE;
  if (url) throw new OperatorError('DATABASE_URL_FILE and DATABASE_URL must not both be set');
  const readFile = (): DatabaseUrl =>
    parseDatabaseUrl(readSettingFile(file, 'DATABASE_URL_FILE').trim(), 'DATABASE_URL_FILE');
  const database = readFile();
  if ('sqlite' in database) return database;
  return {
    postgres: {
      get connectionString() {
        const present = readFile();
        if ('postgres' in present) return present.postgres;
        throw new OperatorError('DATABASE_URL_FILE names SQLite now: restart to use it');
      },
    },
  };
}

/** @throws OperatorError when the URL is invalid; the message begins with the name of the variable */
function parseDatabaseUrl(text: string, variable: string): DatabaseUrl {
  const [, path] = /^sqlite:(?!.*\0)(.*)$/s.exec(text) ?? [];
  const fault = path === undefined ? findUrlFault(text) : describeUnusablePath(path);
  if (fault !== undefined) {
    const clause = fault.replace(/^must be (?=postgres)/, '$&sqlite:PATH, or ');
    throw new OperatorError(`${variable} ${clause}`);
  }
  if (path?.includes('?')) {
    throw new OperatorError(`${variable} must not have parameters after sqlite:PATH`);
  }
  return path === undefined ? { postgres: text } : { sqlite: path };
}
