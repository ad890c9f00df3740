import { isIPv6 } from 'node:net';

/**
 * The supported values: the sslmodes of libpq except "allow" and "prefer", which may silently fall back to
 * plain text, and the session types that can write.
 */
const SUPPORTED_VALUES: Readonly<Record<string, readonly string[]>> = {
  sslmode: ['disable', 'require', 'verify-ca', 'verify-full'],
  ssl: ['true'],
  target_session_attrs: ['any', 'read-write'],
};
/**
 * The parameters that both the driver and libpq read, so that `pg_dump` and `psql` accept every URL that the
 * service accepts. The driver silently ignores all others. libpq rejects further parameters of the driver.
 */
// prettier-ignore
const PARAMETERS = [
  ...Object.keys(SUPPORTED_VALUES),
  'sslrootcert', 'sslcert', 'sslkey', 'sslnegotiation',
  'host', 'port', 'user', 'password', 'options', 'client_encoding',
  'application_name', 'fallback_application_name', 'connect_timeout',
];

const INVALID_URL_PROBLEM =
  'must be postgres://USER:PASSWORD@HOST:PORT/DATABASE. Special characters in USER and PASSWORD must be percent-encoded, and sslmode, if set, must be disable, require, verify-ca or verify-full';
/** Follows the name of a setting. */
export const SEVERAL_HOSTS_PROBLEM =
  'must name one host: put a proxy such as HAProxy in front of several, as docs/postgresql.md shows';

/** `scheme://[user[:password]@]host[:port][/database][?parameters]` */
const CONNECTION_URL = /^postgres(?:ql)?:\/\/(?:[^/?#]*@)?([^/?#@]*)(?:[/?].*)?$/s;

/**
 * Explains why a connection URL (PostgreSQL documentation, 32.1.1.2) is invalid. The explanation contains no
 * value, and no name that may be part of a password.
 *
 * @returns the problem, worded to follow "The URL …"; undefined if the URL is valid
 */
export function findUrlError(url: string): string | undefined {
  const [, host] = CONNECTION_URL.exec(url) ?? [];
  if (host === undefined) return INVALID_URL_PROBLEM;
  if (isIPv6(host) || isIPv6(host.replace(/:\d+$/, ''))) {
    return 'must have brackets around an IPv6 address, for example [::1]:5432';
  }
  if (host.includes(',')) return SEVERAL_HOSTS_PROBLEM;
  const { searchParams: parameters, hash } = URL.parse(url) ?? {};
  if (parameters === undefined || hash !== '') return INVALID_URL_PROBLEM;
  const unknown = [...parameters.keys()].find((name) => !PARAMETERS.includes(name));
  if (unknown !== undefined) return describeUnknownParameter(unknown);
  if (parameters.getAll('host').join().includes(',')) return SEVERAL_HOSTS_PROBLEM;
  if (!isSupported('target_session_attrs', parameters)) {
    return 'must set target_session_attrs to any or read-write, or omit it';
  }
  const isEncryptionClear = !(parameters.has('ssl') && parameters.has('sslmode'));
  const isValid = isSupported('ssl', parameters) && isSupported('sslmode', parameters);
  return isEncryptionClear && isValid ? undefined : INVALID_URL_PROBLEM;
}

function describeUnknownParameter(parameter: string): string {
  if (!/^\w+$/.test(parameter)) return 'has an unknown parameter';
  return `has the unknown parameter ${parameter}: known parameters are ${PARAMETERS.join(', ')}`;
}

/** Whether a parameter is absent, or occurs once with a supported value. */
function isSupported(name: string, parameters: URLSearchParams): boolean {
  const values = parameters.getAll(name);
  return values.length < 2 && values.every((value) => SUPPORTED_VALUES[name]?.includes(value));
}
