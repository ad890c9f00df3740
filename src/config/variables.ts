import { readFileSync } from 'node:fs';
import { getSystemErrorMessage, parseEnv } from 'node:util';
import { OperatorError } from '../errors';
import { findNearMatch } from '../plants/persistence';

/** The variables that the service reads, except those of OpenTelemetry. */
export const VARIABLES = [
  ...['HOST', 'PORT', 'HEALTH_PORT', 'DATABASE_URL', 'DATABASE_URL_FILE'],
  ...['AUTH_TOKENS', 'AUTH_TOKENS_FILE'],
  ...['AUTH_ISSUER', 'AUTH_AUDIENCE', 'AUTH_JWKS_URL', 'AUTH_SCOPE', 'AUTH_SCOPE_METRICS'],
  ...['TLS_CERT', 'TLS_KEY'],
  ...['BODY_LIMIT', 'HEADERS_LIMIT', 'MAX_CONNECTIONS', 'RATE_LIMIT', 'CORS_ORIGINS'],
  ...['HEADERS_TIMEOUT', 'REQUEST_TIMEOUT', 'KEEP_ALIVE_TIMEOUT'],
  ...['SHUTDOWN_GRACE', 'SHUTDOWN_TIMEOUT'],
  ...['LOG_LEVEL', 'ACCESS_LOG', 'TRUSTED_PROXIES', 'DOCS', 'NODE_ENV'],
];

/**
 * Variables that Kubernetes sets in every container of a namespace with a Service named `auth` or
 * `auth-…`. The operator has not set them, so they are not reported.
 */
const SERVICE_LINK =
  /^AUTH_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_\w+)?)?)$/;

export function describeUnknownAuth(environment: NodeJS.ProcessEnv): string[] {
  return unknownNames(environment)
    .filter((name) => name.startsWith('AUTH_') && !SERVICE_LINK.test(name))
    .map((name) => {
      const near = findNearMatch(name, VARIABLES);
      const valid = VARIABLES.filter((each) => each.startsWith('AUTH_')).join(', ');
      return `${name} is an unknown variable: ${near ? `did you mean ${near}?` : `known variables are ${valid}`}`;
    });
}

/** Describes each variable that is unknown to the service, but has nearly the name of a known one. */
export function describeMisspelled(environment: NodeJS.ProcessEnv): string[] {
  return unknownNames(environment).flatMap((name) => {
    const near = findNearMatch(name, VARIABLES);
    return near ? [`${name} is set but has no effect: did you mean ${near}?`] : [];
  });
}

function unknownNames(environment: NodeJS.ProcessEnv): string[] {
  return Object.keys(environment).filter(
    (name) => !VARIABLES.includes(name) && environment[name]?.trim(),
  );
}

/** The text between quotes, which may span lines. */
const QUOTED_VALUE = /(?<==[ \t]*)(["'`])[^]*?\1/g;
/** An assignment, a comment or nothing. Node's parser silently ignores any other line. */
const LINE = /^\s*(?:(?:export\s+)?[A-Za-z_]\w*\s*=.*|#.*)?$/;

/**
 * Adds the variables of a file to an environment, as Node.js parses such files. A variable that the
 * environment has, even an empty one, stays as it is.
 *
 * @throws OperatorError when the file cannot be read, or has a line that assigns nothing
 */
export function addEnvFile(file: string, environment: NodeJS.ProcessEnv): void {
  let content: string;
  try {
    content = readSettingFile(file);
  } catch (error) {
    throw new OperatorError(`--env-file ${file} ${(error as Error).message}`);
  }
  const lines = content
    .replace(QUOTED_VALUE, (value) => value.replace(/[^\n]/g, ''))
    .split(/\r?\n/);
  const invalid = lines.findIndex((line) => !LINE.test(line));
  if (invalid >= 0) {
    throw new OperatorError(`--env-file ${file}: line ${invalid + 1} must be NAME=VALUE`);
  }
  for (const [name, value] of Object.entries(parseEnv(content))) environment[name] ??= value;
}

/**
 * Reads a text file.
 *
 * @throws Error when it cannot be read. The message has the reason, but not the path, which may be a
 *   secret given to the wrong variable.
 */
export function readSettingFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { errno, message } = error as NodeJS.ErrnoException;
    const reason = errno === undefined ? message : getSystemErrorMessage(errno);
    throw new Error(`cannot be read: ${reason}`, { cause: error });
  }
}
