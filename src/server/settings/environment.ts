import {
  isAuthConfigured,
  type ServiceAuthOptions,
  validateAuthOptions,
} from '../../plants/auth/auth.options';
import { OperatorError, OptionError } from '../../plants/errors/operator.error';
import { formatSystemError } from '../../plants/errors/system-error';
import { lacksTls } from '../../plants/store/postgres/postgres.settings';
import { matchKind, type StoreLocation } from '../../plants/store/store-location';
import { isProduction } from '../../plants/environment';
import { databaseVariableName, readDatabase } from './database.settings';
import { AUTH, findUnknownVariables, readVariables, SETTINGS, type Values } from './variables';

/** Paths of PEM files: the certificate, followed by the intermediate certificates, and its key. */
export interface TlsFiles {
  readonly certificate: string;
  readonly key: string;
}

/** The settings of the service, checked and with defaults. */
export interface Settings extends Values<typeof SETTINGS> {
  readonly database: StoreLocation;
  readonly auth: ServiceAuthOptions;
  /** Undefined for HTTP. */
  readonly tls: TlsFiles | undefined;
}

/**
 * Reads the settings from an environment.
 * @throws OperatorError with a line per invalid variable; the message never shows a secret
 */
export function readEnvironment(environment: NodeJS.ProcessEnv): Settings {
  const errors: string[] = [];
  const settings = readVariables(SETTINGS, environment, errors);
  const auth = readVariables(AUTH, environment, errors);
  const { tlsCert: certificate, tlsKey: key } = settings;
  const tls = certificate && key ? { certificate, key } : undefined;
  errors.push(...findUnknownVariables(environment));
  let database: StoreLocation | undefined;
  try {
    database = readDatabase(environment);
  } catch (error) {
    errors.push(String(formatForOperator(error, environment)));
  }
  errors.push(...validateAuthOptions(auth).map((error) => nameVariables(error, environment)));
  if (tls === undefined && (certificate ?? key)) {
    errors.push('TLS_CERT and TLS_KEY must both be set, or neither.');
  }
  if (settings.headersTimeout > settings.requestTimeout) {
    errors.push('HEADERS_TIMEOUT must not be longer than REQUEST_TIMEOUT.');
  }
  if (settings.shutdownGrace >= settings.shutdownTimeout) {
    errors.push('SHUTDOWN_GRACE must be shorter than SHUTDOWN_TIMEOUT.');
  }
  if (isProduction(environment)) {
    errors.push(...findProductionErrors(environment, auth, database));
  }
  if (errors.length > 0 || !database) throw new OperatorError(errors.join('\n'));
  return Object.freeze({ ...settings, database, auth, tls });
}

/** Returns a sentence for each setting that is accepted only outside production. */
function findProductionErrors(
  environment: NodeJS.ProcessEnv,
  auth: ServiceAuthOptions,
  database: StoreLocation | undefined,
): string[] {
  const errors: string[] = [];
  // An invalid AUTH_TOKENS has been reported already.
  if (!isAuthConfigured(auth) && !environment.AUTH_TOKENS?.trim()) {
    errors.push(
      'AUTH_TOKENS, AUTH_TOKENS_FILE or AUTH_ISSUER must be set when NODE_ENV is production.',
    );
  }
  if (database && matchKind(database, { sqlite: () => false, postgres: lacksTls })) {
    errors.push(
      `${databaseVariableName(environment)} must have sslmode for a server on another machine when NODE_ENV is production: sslmode=verify-full, or sslmode=disable to send plants in plain text.`,
    );
  }
  return errors;
}

/** Returns the sentence of an error, with the names of variables in place of those of options. */
function nameVariables(error: OptionError, environment: NodeJS.ProcessEnv): string {
  const { message, option, required } = error;
  const auth: Partial<Record<string, { readonly name: string }>> = AUTH;
  // All other options that can be invalid belong to the database.
  const nameOf = (each: string): string =>
    auth[each.replace('auth.', '')]?.name ?? databaseVariableName(environment);
  const sentence = message.replace(option, nameOf(option));
  return required === undefined ? sentence : sentence.replace(required, nameOf(required));
}

/** Formats an error for the operator: a sentence for an expected error, the whole error for a bug. */
export function formatForOperator(error: unknown, environment = process.env): unknown {
  if (error instanceof OptionError) return nameVariables(error, environment);
  if (error instanceof OperatorError) return error.message;
  if (!(error instanceof Error)) return error;
  // The message of an error of the operating system or of SQLite is sufficient.
  const { syscall, code } = error as NodeJS.ErrnoException;
  if (syscall !== undefined) return formatSystemError(error);
  return code === 'ERR_SQLITE_ERROR' ? error.message : error;
}
