import { isIPv6 } from 'node:net';
import { findNearMatch } from '../near-match';

/**
 * The parameters that control encryption, and the values supported: libpq's modes without "allow" and
 * "prefer", which may silently fall back to plain text. So does the driver for any other value.
 */
const ENCRYPTION: Readonly<Record<string, readonly string[]>> = {
  sslmode: ['disable', 'require', 'verify-ca', 'verify-full'],
  ssl: ['true', '1', 'false', '0'],
};
/** The store needs sessions that can write, and checks that itself. These values agree with it. */
const SESSION_ATTRIBUTES = ['any', 'read-write', 'primary'];

/** The parameters that the driver or the store reads. The driver silently ignores any other. */
const PARAMETERS = [
  ...Object.keys(ENCRYPTION),
  ...['sslrootcert', 'sslcert', 'sslkey', 'sslnegotiation'],
  ...['host', 'port', 'user', 'password', 'max', 'options', 'client_encoding', 'binary'],
  ...['application_name', 'fallback_application_name', 'target_session_attrs', 'connect_timeout'],
  ...['statement_timeout', 'lock_timeout', 'query_timeout', 'idle_in_transaction_session_timeout'],
];

/** `scheme://[user[:password]@]host[:port][,host[:port]…][/database][?parameters]` */
const CONNECTION_URL = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)([/?].*)?$/s;

/**
 * Splits a connection URL of libpq's form (PostgreSQL documentation, 32.1.1.3) into one per host.
 *
 * @returns undefined when it is no such URL, or has parameters that the store does not support
 */
export function urlPerHost(url: string): string[] | undefined {
  const [, start, hosts, rest = ''] = CONNECTION_URL.exec(url) ?? [];
  if (start === undefined || hosts === undefined) return undefined;
  const urls = hosts.split(',').map((host) => start + host + rest);
  return urls.every(isSupported) ? urls : undefined;
}

/**
 * Describes what is wrong with a connection URL: an IPv6 address without brackets, or the first
 * parameter that is not known, for example a misspelled `sslmode`. It shows no value, and no name
 * that may be part of a password.
 *
 * @returns undefined when it is neither, or the text is no URL
 */
export function describeUrlFault(url: string): string | undefined {
  const [, start, hosts = '', rest = ''] = CONNECTION_URL.exec(url) ?? [];
  const addresses = hosts.split(',').flatMap((host) => [host, host.replace(/:\d+$/, '')]);
  if (addresses.some((address) => isIPv6(address))) {
    return 'must have brackets around an IPv6 address, for example [::1]:5432';
  }
  const parameters = URL.parse(`${start}${hosts.split(',', 1)[0]}${rest}`)?.searchParams;
  const unknown = [...(parameters?.keys() ?? [])].find((name) => !PARAMETERS.includes(name));
  if (unknown === undefined) return undefined;
  if (!/^\w+$/.test(unknown)) return 'has an unknown parameter';
  const near = findNearMatch(unknown, PARAMETERS);
  const advice = near ? `did you mean ${near}?` : `known parameters are ${PARAMETERS.join(', ')}`;
  return `has the unknown parameter ${unknown}: ${advice}`;
}

function isSupported(url: string): boolean {
  const { searchParams: parameters, hash } = URL.parse(url) ?? {};
  const encryption = [...(parameters ?? [])].filter(([name]) => Object.hasOwn(ENCRYPTION, name));
  return (
    parameters !== undefined &&
    hash === '' &&
    describeUrlFault(url) === undefined &&
    encryption.length <= 1 &&
    encryption.every(([name, value]) => ENCRYPTION[name]?.includes(value)) &&
    SESSION_ATTRIBUTES.includes(parameters.get('target_session_attrs') ?? 'any')
  );
}
