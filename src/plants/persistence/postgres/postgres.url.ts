/**
 * The parameters that control encryption, and the values supported: libpq's modes without "allow" and
 * "prefer", which may silently fall back to plain text. So does the driver for any other value.
 */
const ENCRYPTION: Readonly<Record<string, readonly string[]>> = {
  sslmode: ['disable', 'require', 'verify-ca', 'verify-full'],
  ssl: ['true', '1', 'false', '0'],
  requiressl: [],
};
/** The store needs sessions that can write, and checks that itself. These values agree with it. */
const SESSION_ATTRIBUTES = ['any', 'read-write', 'primary'];

/** `scheme://[user[:password]@]host[:port][,host[:port]…][/database][?parameters]` */
const CONNECTION_URL = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)([/?].*)?$/s;

/**
 * Splits a connection URL of libpq's form into one URL per host, PostgreSQL documentation section
 * 32.1.1.3.
 *
 * @returns undefined when it is no such URL, or has parameters that the store does not support
 */
export function urlPerHost(url: string): string[] | undefined {
  const [, start, hosts, rest = ''] = CONNECTION_URL.exec(url) ?? [];
  if (start === undefined || hosts === undefined) return undefined;
  const urls = hosts.split(',').map((host) => start + host + rest);
  return urls.every(isSupported) ? urls : undefined;
}

function isSupported(url: string): boolean {
  const parameters = URL.parse(url)?.searchParams;
  return (
    parameters !== undefined &&
    hasClearEncryption(parameters) &&
    SESSION_ATTRIBUTES.includes(parameters.get('target_session_attrs') ?? 'any')
  );
}

function hasClearEncryption(parameters: URLSearchParams): boolean {
  const given = [...parameters].filter(([name]) => Object.hasOwn(ENCRYPTION, name));
  return given.length <= 1 && given.every(([name, value]) => ENCRYPTION[name]?.includes(value));
}
