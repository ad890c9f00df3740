import {
  isAuthConfigured,
  type ServiceAuthOptions,
  validateAuthOptions,
} from '../../plants/auth/auth.options';
import { describeGuessableTokens } from '../../plants/auth/listed-token';
import {
  describeInvalidOption,
  OperatorError,
  OptionError,
} from '../../plants/errors/operator.error';
import { lacksTls } from '../../plants/persistence/postgres/postgres.settings';
import { isProduction } from '../../plants/plants.options';
import type { StoreLocation } from '../../plants/persistence/stores';
import { databaseVariableName, readDatabase } from './database.settings';
import { parseTokens } from './variable-parsers';
import {
  AUTH,
  COMBINED_SETTINGS,
  findUnknownVariables,
  readVariables,
  SETTINGS,
  type Values,
} from './variables';

/** Paths of PEM files. */
export interface TlsFiles {
  /** The certificate, followed by the intermediate certificates. */
  readonly certificate: string;
  readonly key: string;
}

/** The settings of the standalone service. */
export interface Settings extends Values<typeof SETTINGS> {
  readonly database: StoreLocation;
  /** Contains only digests of tokens, no tokens. */
  readonly auth: ServiceAuthOptions;
  /** Undefined for HTTP. */
  readonly tls: TlsFiles | undefined;
  /** Warnings about the environment, for the log: one sentence each. */
  readonly warnings: readonly string[];
}

/**
 * Reads the settings from an environment. An empty variable counts as not set.
 *
 * @throws OperatorError when any variable is invalid; the message never shows a secret
 */
export function readEnvironment(environment: NodeJS.ProcessEnv): Settings {
  const errors: string[] = [];
  const settings = readVariables(SETTINGS, environment, errors);
  let database: StoreLocation | undefined;
  try {
    database = readDatabase(environment);
  } catch (error) {
    errors.push((error as Error).message);
  }
  const auth = readVariables(AUTH, environment, errors);
  const { certificate, key } = readVariables(COMBINED_SETTINGS, environment, errors);
  const tls = certificate && key ? { certificate, key } : undefined;
  const warnings = findUnknownVariables(environment, errors);
  if (auth.tokens !== undefined) {
    // The settings contain digests, which do not reveal the length of a token.
    const warning = describeGuessableTokens(
      'AUTH_TOKENS',
      parseTokens(environment.AUTH_TOKENS ?? ''),
    );
    if (warning !== undefined) warnings.push(warning);
  }
  errors.push(
    ...validateAuthOptions(auth).map((each) => describeInvalidOption(each, variableNameOf)),
  );
  if (tls === undefined && (certificate ?? key)) {
    errors.push('TLS_CERT and TLS_KEY must both be set, or neither');
  }
  if (settings.headersTimeout > settings.requestTimeout) {
    errors.push('HEADERS_TIMEOUT must not be longer than REQUEST_TIMEOUT');
  }
  if (settings.shutdownGrace >= settings.shutdownTimeout) {
    errors.push('SHUTDOWN_GRACE must be shorter than SHUTDOWN_TIMEOUT');
  }
  // An invalid AUTH_TOKENS has been reported already.
  const hasTokens = isAuthConfigured(auth) || environment.AUTH_TOKENS?.trim();
  if (isProduction(environment) && !hasTokens) {
    errors.push(
      'AUTH_TOKENS, AUTH_TOKENS_FILE or AUTH_ISSUER must be set when NODE_ENV is production',
    );
  }
  if (isProduction(environment) && database && 'postgres' in database) {
    if (lacksTls(database.postgres)) {
      errors.push(
        `${databaseVariableName(environment)} must have sslmode for a server on another machine when NODE_ENV is production: sslmode=verify-full, or sslmode=disable to send plants in plain text`,
      );
    }
  }
  if (errors.length > 0 || !database) throw new OperatorError(errors.join('\n'));
  return Object.freeze({ ...settings, database, auth, tls, warnings });
}

/** Returns the name of the variable that sets an option of the module. */
function variableNameOf(option: string): string {
  const auth: Partial<Record<string, { readonly name: string }>> = AUTH;
  // All other options that can be invalid belong to the database.
  return auth[option.replace('auth.', '')]?.name ?? databaseVariableName(process.env);
}

/** Formats an error for the operator: a sentence for an expected error, the whole error for a bug. */
export function formatForOperator(error: unknown): unknown {
  if (error instanceof OptionError) return `${describeInvalidOption(error, variableNameOf)}.`;
  if (error instanceof OperatorError) return error.message;
  // The message of an operating system or SQLite error is sufficient.
  const isExternal = error instanceof Error && ('syscall' in error || 'errcode' in error);
  return isExternal ? error.message : error;
}
