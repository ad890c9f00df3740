import { OperatorError } from '../../plants/errors/operator.error';
import { type StoreLocation, STORES } from '../../plants/persistence/stores';
import { readSettingFile } from './env-file';
import { OTHERS, readVariables } from './variables';

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
export function readDatabase(environment: NodeJS.ProcessEnv): StoreLocation {
  const { databaseUrl, databaseUrlFile: file } = readVariables(OTHERS, environment, []);
  if (file === undefined) return parseDatabaseUrl(databaseUrl, 'DATABASE_URL');
  if (environment.DATABASE_URL?.trim()) {
    throw new OperatorError('DATABASE_URL_FILE and DATABASE_URL must not both be set');
  }
  const readFile = (): StoreLocation =>
    parseDatabaseUrl(readSettingFile(file, 'DATABASE_URL_FILE').trim(), 'DATABASE_URL_FILE');
  const location = readFile();
  if ('sqlite' in location) return location;
  return {
    postgres: {
      // A getter, because the settings are read again after each fault, and the file may have been
      // replaced meanwhile. The driver takes a function for the password alone.
      get connectionString() {
        const present = readFile();
        if ('postgres' in present && typeof present.postgres === 'string') return present.postgres;
        throw new OperatorError('DATABASE_URL_FILE names SQLite now: restart to use it');
      },
    },
  };
}

/** @throws OperatorError when the URL is invalid; the message begins with the name of the variable */
function parseDatabaseUrl(text: string, variable: string): StoreLocation {
  const kinds = Object.values(STORES);
  const [, scheme = ''] = /^([a-z]+):(?!.*\0)/s.exec(text) ?? [];
  const kind = kinds.find(({ schemes }) => schemes.includes(scheme));
  const fault = kind
    ? kind.findUrlError(text)
    : `must be ${kinds.map(({ form }) => form).join(', or ')}`;
  if (kind && fault === undefined) return kind.parseLocation(text);
  throw new OperatorError(`${variable} ${fault}`);
}
