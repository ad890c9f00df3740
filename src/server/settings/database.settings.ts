import { isProduction } from '../../plants/environment';
import { OperatorError, OptionError } from '../../plants/errors/operator.error';
import { findUrlError } from '../../plants/store/postgres/postgres.url';
import { findPathError } from '../../plants/store/sqlite/sqlite.settings';
import { matchKind, type StoreKind, type StoreLocation } from '../../plants/store/store-location';
import { readSettingFile } from './settings-file';
import { readText } from './variable-text';
import { DATABASE, readVariables } from './variables';

/** Returns the name of the variable that says which database. */
export function databaseVariableName(environment: NodeJS.ProcessEnv): string {
  return environment.DATABASE_URL_FILE?.trim() ? 'DATABASE_URL_FILE' : 'DATABASE_URL';
}

/**
 * Reads `DATABASE_URL` or `DATABASE_URL_FILE`, one of which must be set in production. Commands call it alone, so that
 * no other variable keeps them from working.
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
  return matchKind<StoreLocation>(location, {
    sqlite: () => location,
    // Read again for each attempt to connect, because the file may have been replaced.
    postgres: () => ({
      postgres: () => {
        const { postgres } = readFile() as { postgres?: string };
        if (postgres !== undefined) return postgres;
        throw new OperatorError(
          'DATABASE_URL_FILE now contains the URL of another kind of store: restart the service to use it.',
        );
      },
    }),
  });
}

/** The URLs of a kind of store. */
interface UrlFormat {
  readonly schemes: readonly string[];
  /** What an invalid URL should look like. */
  readonly example: string;
  /**
   * @param path what follows the scheme and its colon
   * @throws OptionError when the URL is invalid
   */
  parse(url: string, path: string): StoreLocation;
}

const URL_FORMATS: Readonly<Record<StoreKind, UrlFormat>> = {
  sqlite: {
    schemes: ['sqlite'],
    example: 'sqlite:PATH',
    parse: (_url, path) => {
      const error = findPathError(path);
      if (error !== undefined) throw new OptionError('sqlite', error);
      if (!path.includes('?')) return { sqlite: path };
      throw new OptionError('sqlite', 'sqlite must not have parameters after its path.');
    },
  },
  postgres: {
    schemes: ['postgres', 'postgresql'],
    example: 'postgres://USER:PASSWORD@HOST:PORT/DATABASE',
    parse: (url) => {
      const error = findUrlError(url);
      if (error !== undefined) throw new OptionError('postgres', error);
      return { postgres: url };
    },
  },
};

/** @throws OperatorError when the URL is invalid */
function parseDatabaseUrl(text: string, variable: string): StoreLocation {
  // The scheme, and what follows it. Neither the system nor SQLite accepts U+0000 in a path.
  const [, scheme = '', path = ''] = /^([a-z]+):([^\0]*)$/.exec(text) ?? [];
  const formats = Object.values(URL_FORMATS);
  const format = formats.find(({ schemes }) => schemes.includes(scheme));
  if (format) return format.parse(text, path);
  const examples = formats.map(({ example }) => example).join(', or ');
  throw new OperatorError(`${variable} must be ${examples}.`);
}
