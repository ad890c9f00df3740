/**
 * What says whether to encrypt, and how: libpq's modes less "allow" and "prefer", which may fall back
 * to plain text without a word. So does the driver at anything else that these parameters say.
 */
const ENCRYPTION: Readonly<Record<string, readonly string[]>> = {
  sslmode: ['disable', 'require', 'verify-ca', 'verify-full'],
  ssl: ['true', '1', 'false', '0'],
  requiressl: [],
};
/** All that fit a store that writes: whatever is asked for, a session that cannot write is no good. */
const SESSION_ATTRIBUTES = ['any', 'read-write', 'primary'];

/** `scheme://[user[:password]@]host[:port][,host[:port]…][/database][?parameters]` */
const CONNECTION_URL = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)([/?].*)?$/s;

/**
 * Takes a connection URL of libpq's form apart into one URL for each of its hosts, PostgreSQL
 * documentation section 32.1.1.3.
 *
 * @returns undefined when it is no such URL, or asks for what the store does not do
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
    isUnmistakable(parameters) &&
    SESSION_ATTRIBUTES.includes(parameters.get('target_session_attrs') ?? 'any')
  );
}

function isUnmistakable(parameters: URLSearchParams): boolean {
  const given = [...parameters].filter(([name]) => Object.hasOwn(ENCRYPTION, name));
  return given.length <= 1 && given.every(([name, value]) => ENCRYPTION[name]?.includes(value));
}
