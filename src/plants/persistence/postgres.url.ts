/** libpq's modes less "allow" and "prefer", which may fall back to plain text without a word. */
const SSL_MODES = ['disable', 'require', 'verify-ca', 'verify-full'];
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
    SSL_MODES.includes(parameters.get('sslmode') ?? 'disable') &&
    SESSION_ATTRIBUTES.includes(parameters.get('target_session_attrs') ?? 'any')
  );
}
