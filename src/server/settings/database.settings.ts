import { OperatorError } from '../../plants/errors/operator.error';
import { findUrlFault } from '../../plants/persistence/postgres/postgres.url';
import { describeUnusablePath } from '../../plants/persistence/sqlite/sqlite.settings';
import { readSettingFile } from './env-file';
import { OTHERS, readVariables } from './variables';

type DatabaseUrl = { readonly sqlite: string } | { readonly postgres: string };

/** Where the plants are: a SQLite file, or the connection URL of a PostgreSQL database. */
export type DatabaseSettings =
  DatabaseUrl | { readonly postgres: { readonly connectionString: string } };

/** The name of the variable that says where the plants are. */
export function databaseVariable(environment: NodeJS.ProcessEnv): string {
  const { databaseUrl, databaseUrlFile } = OTHERS;
  return (environment[databaseUrlFile.name]?.trim() ? databaseUrlFile : databaseUrl).name;
}

/**
 * Reads `DATABASE_URL` or `DATABASE_URL_FILE`, and nothing else of an environment.
 *
 * @throws OperatorError when it is invalid; the message never shows a secret
 */
export function readDatabase(environment: NodeJS.ProcessEnv): DatabaseSettings {
  const { databaseUrl, databaseUrlFile: file } = readVariables(OTHERS, environment, []);
  if (file === undefined) return parseDatabaseUrl(databaseUrl, 'DATABASE_URL');
  if (environment.DATABASE_URL?.trim()) {
    throw new OperatorError('DATABASE_URL_FILE and DATABASE_URL must not both be set');
  }
  const readFile = (): DatabaseUrl =>
    parseDatabaseUrl(readSettingFile(file, 'DATABASE_URL_FILE').trim(), 'DATABASE_URL_FILE');
  const database = readFile();
  if ('sqlite' in database) return database;
  return {
    postgres: {
      // A getter, because the settings are read again after each fault, and the file may have been
      // replaced meanwhile. The driver takes a function for the password alone.
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
  const [, scheme, path = ''] = /^(sqlite|postgres|postgresql):(?!.*\0)(.*)$/s.exec(text) ?? [];
  const fault = findFault(text, scheme, path);
  if (fault !== undefined) throw new OperatorError(`${variable} ${fault}`);
  return scheme === 'sqlite' ? { sqlite: path } : { postgres: text };
}

/** @returns a clause that continues the name of the variable; undefined when nothing is wrong */
function findFault(text: string, scheme: string | undefined, path: string): string | undefined {
  if (scheme === undefined) {
    return 'must be sqlite:PATH, or postgres://USER:PASSWORD@HOST:PORT/DATABASE';
  }
  if (scheme !== 'sqlite') return findUrlFault(text);
  const fault = describeUnusablePath(path);
  return fault ?? (path.includes('?') ? 'must not have parameters after sqlite:PATH' : undefined);
}
