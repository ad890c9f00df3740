import { isIPv6 } from 'node:net';
import { findNearMatch } from '../../near-match';

/**
 * The values supported: of libpq's modes those without "allow" and "prefer", which may silently fall back
 * to plain text; and the kinds of session that agree with the store, which needs one that can write.
 */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  sslmode: ['disable', 'require', 'verify-ca', 'verify-full'],
  ssl: ['true'],
  target_session_attrs: ['any', 'read-write'],
};
/**
 * The parameters that both the driver and libpq read, so that `pg_dump` and `psql` accept each URL that the
 * service accepts. The driver silently ignores others, and libpq refuses further ones of the driver.
 */
// prettier-ignore
const PARAMETERS = [
  ...Object.keys(VALUES),
  'sslrootcert', 'sslcert', 'sslkey', 'sslnegotiation',
  'host', 'port', 'user', 'password', 'options', 'client_encoding',
  'application_name', 'fallback_application_name', 'connect_timeout',
];

const FORM =
  'must be postgres://USER:PASSWORD@HOST:PORT/DATABASE. Special characters in USER and PASSWORD must be percent-encoded, and sslmode, if set, must be disable, require, verify-ca or verify-full';
/** A clause about several hosts, which continues the name of a setting. */
export const SEVERAL_HOSTS =
  'must name one host: put a proxy such as HAProxy in front of several, as docs/postgresql.md shows';

/** `scheme://[user[:password]@]host[:port][/database][?parameters]` */
const CONNECTION_URL = /^postgres(?:ql)?:\/\/(?:[^/?#]*@)?([^/?#@]*)(?:[/?].*)?$/s;

/**
 * Finds what is wrong with a connection URL (PostgreSQL documentation, 32.1.1.2). It shows no value,
 * and no name that may be part of a password.
 *
 * @returns a clause that continues "The URL …"; undefined when nothing is wrong
 */
export function findUrlError(url: string): string | undefined {
  const [, host] = CONNECTION_URL.exec(url) ?? [];
  if (host === undefined) return FORM;
  if (isIPv6(host) || isIPv6(host.replace(/:\d+$/, ''))) {
    return 'must have brackets around an IPv6 address, for example [::1]:5432';
  }
  if (host.includes(',')) return SEVERAL_HOSTS;
  const { searchParams: parameters, hash } = URL.parse(url) ?? {};
  if (parameters === undefined || hash !== '') return FORM;
  const unknown = [...parameters.keys()].find((name) => !PARAMETERS.includes(name));
  if (unknown !== undefined) return adviseOnUnknown(unknown);
  if (parameters.getAll('host').join().includes(',')) return SEVERAL_HOSTS;
  if (!isSupported('target_session_attrs', parameters)) {
    return 'must have target_session_attrs any or read-write, if it has it';
  }
  const isEncryptionClear = !(parameters.has('ssl') && parameters.has('sslmode'));
  const isValid = isSupported('ssl', parameters) && isSupported('sslmode', parameters);
  return isEncryptionClear && isValid ? undefined : FORM;
}

function adviseOnUnknown(parameter: string): string {
  if (!/^\w+$/.test(parameter)) return 'has an unknown parameter';
  const near = findNearMatch(parameter, PARAMETERS);
  const advice = near ? `did you mean ${near}?` : `known parameters are ${PARAMETERS.join(', ')}`;
  return `has the unknown parameter ${parameter}: ${advice}`;
}

/** Whether a parameter is absent, or is there once with a supported value. */
function isSupported(name: string, parameters: URLSearchParams): boolean {
  const values = parameters.getAll(name);
  return values.length < 2 && values.every((value) => VALUES[name]?.includes(value));
}
