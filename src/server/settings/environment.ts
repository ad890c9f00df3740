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
import { databaseVariable, readDatabase } from './database.settings';
import type { TlsFiles } from '../edge/tls';
import { parseTokens } from './variable-parsers';
import { AUTH, findMisspelled, OTHERS, readVariables, SETTINGS, type Values } from './variables';

/** The settings of the standalone service. */
export interface Settings extends Values<typeof SETTINGS> {
  readonly database: StoreLocation;
  /** Its tokens are digests. */
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
  const faults: string[] = [];
  const settings = readVariables(SETTINGS, environment, faults);
  let database: StoreLocation | undefined;
  try {
    database = readDatabase(environment);
  } catch (error) {
    faults.push((error as Error).message);
  }
  const auth = readVariables(AUTH, environment, faults);
  const { certificate, key } = readVariables(OTHERS, environment, faults);
  const tls = certificate && key ? { certificate, key } : undefined;
  const warnings = findMisspelled(environment, faults);
  if (auth.tokens !== undefined) {
    // The settings have digests, which do not tell how long a token is.
    const warning = describeGuessableTokens(
      'AUTH_TOKENS',
      parseTokens(environment.AUTH_TOKENS ?? ''),
    );
    if (warning !== undefined) warnings.push(warning);
  }
  faults.push(...validateAuthOptions(auth).map((each) => describeInvalidOption(each, variableOf)));
  if (tls === undefined && (certificate ?? key)) {
    faults.push('TLS_CERT and TLS_KEY must both be set, or neither');
  }
  if (settings.headersTimeout > settings.requestTimeout) {
    faults.push('HEADERS_TIMEOUT must not be longer than REQUEST_TIMEOUT');
  }
  if (settings.shutdownGrace >= settings.shutdownTimeout) {
    faults.push('SHUTDOWN_GRACE must be shorter than SHUTDOWN_TIMEOUT');
  }
  // An invalid AUTH_TOKENS has been reported already.
  const hasTokens = isAuthConfigured(auth) || environment.AUTH_TOKENS?.trim();
  if (isProduction(environment) && !hasTokens) {
    faults.push(
      'AUTH_TOKENS, AUTH_TOKENS_FILE or AUTH_ISSUER must be set when NODE_ENV is production',
    );
  }
  if (isProduction(environment) && database && 'postgres' in database) {
    if (lacksTls(database.postgres)) {
      faults.push(
        `${databaseVariable(environment)} must have sslmode for a server on another machine when NODE_ENV is production: sslmode=verify-full, or sslmode=disable to send plants in plain text`,
      );
    }
  }
  if (faults.length > 0 || !database) throw new OperatorError(faults.join('\n'));
  return Object.freeze({ ...settings, database, auth, tls, warnings });
}

/** The variable that sets an option of the module. */
function variableOf(option: string): string {
  const auth: Partial<Record<string, { readonly name: string }>> = AUTH;
  // The other options that can be at fault say where the plants are.
  return auth[option.replace('auth.', '')]?.name ?? databaseVariable(process.env);
}

/** What an operator is shown of an error: a sentence, or all of an error of the program. */
export function describeForOperator(error: unknown): unknown {
  if (error instanceof OptionError) return `${describeInvalidOption(error, variableOf)}.`;
  if (error instanceof OperatorError) return error.message;
  // An error of the operating system or of SQLite says enough by itself.
  const isOutside = error instanceof Error && ('syscall' in error || 'errcode' in error);
  return isOutside ? error.message : error;
}
