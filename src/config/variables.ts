import { findNearMatch } from '../spelling';

/** The variables that the service reads, except those of OpenTelemetry. */
export const VARIABLES = [
  ...['HOST', 'PORT', 'DATABASE_URL', 'DATABASE_URL_FILE'],
  ...['AUTH_TOKENS', 'AUTH_TOKENS_FILE'],
  ...['AUTH_ISSUER', 'AUTH_AUDIENCE', 'AUTH_JWKS_URL', 'AUTH_SCOPE', 'AUTH_SCOPE_METRICS'],
  ...['TLS_CERT', 'TLS_KEY'],
  ...['BODY_LIMIT', 'HEADERS_LIMIT', 'MAX_CONNECTIONS', 'RATE_LIMIT', 'CORS_ORIGINS'],
  ...['HEADERS_TIMEOUT', 'REQUEST_TIMEOUT', 'KEEP_ALIVE_TIMEOUT'],
  ...['SHUTDOWN_GRACE', 'SHUTDOWN_TIMEOUT'],
  ...['LOG_LEVEL', 'ACCESS_LOG', 'DOCS', 'NODE_ENV'],
];

/**
 * Variables that Kubernetes sets in every container of a namespace with a Service named `auth` or
 * `auth-…`. The operator has not set them, so they are not reported.
 */
const SERVICE_LINK =
  /^AUTH_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_\w+)?)?)$/;

/** Describes each variable that begins with `AUTH_` and is unknown to the service. */
export function describeUnknownAuth(environment: NodeJS.ProcessEnv): string[] {
  return unknownNames(environment)
    .filter((name) => name.startsWith('AUTH_') && !SERVICE_LINK.test(name))
    .map((name) => {
      const near = findNearMatch(name, VARIABLES);
      const known = VARIABLES.filter((each) => each.startsWith('AUTH_')).join(', ');
      return `${name} is an unknown variable: ${near ? `did you mean ${near}?` : `known variables are ${known}`}`;
    });
}

/** Describes each variable that is unknown to the service, but has nearly the name of a known one. */
export function describeMisspelled(environment: NodeJS.ProcessEnv): string[] {
  return unknownNames(environment).flatMap((name) => {
    const near = findNearMatch(name, VARIABLES);
    return near ? [`${name} is set but has no effect: did you mean ${near}?`] : [];
  });
}

/** The variables that are set but unknown to the service. */
function unknownNames(environment: NodeJS.ProcessEnv): string[] {
  return Object.keys(environment).filter(
    (name) => !VARIABLES.includes(name) && environment[name]?.trim(),
  );
}
