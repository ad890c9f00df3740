/** The sslmodes of libpq except "allow" and "prefer", which may silently fall back to plain text. */
const SSL_MODES = ['disable', 'require', 'verify-ca', 'verify-full'];

const FORM_SENTENCE =
  'postgres must be postgres://USER:PASSWORD@HOST:PORT/DATABASE, with special characters in USER and PASSWORD percent-encoded, and an IPv6 address in brackets.';
const ONE_HOST_SENTENCE =
  'postgres must name one host: put a proxy such as HAProxy in front of several, as docs/postgresql.md shows.';

/**
 * Parses a connection URL without its user and password: a URL may have them without a host, as in
 * `postgres://USER:PASSWORD@/DATABASE?host=/cloudsql/INSTANCE`, but WHATWG's rules do not allow that.
 */
export function parseUrl(url: string): URL | null {
  return URL.parse(url.replace(/^(\w+:\/\/)[^/?#]*@/, '$1'));
}

/**
 * Explains in a sentence why a connection URL (PostgreSQL documentation, 32.1.1.2) is invalid. The sentence contains
 * no part of the URL, which may be part of a password.
 *
 * @returns undefined if the URL is valid
 */
export function findUrlError(url: string): string | undefined {
  const { searchParams: parameters, hash } = parseUrl(url) ?? {};
  const [, authority = ''] = /^\w+:\/\/([^/?#]*)/.exec(url) ?? [];
  const hosts = [authority.replace(/.*@/s, ''), ...(parameters?.getAll('host') ?? [])];
  if (hosts.join('').includes(',')) return ONE_HOST_SENTENCE;
  if (!/^postgres(ql)?:\/\//.test(url) || !parameters || hash !== '') return FORM_SENTENCE;
  const modes = parameters.getAll('sslmode');
  return modes.length < 2 && modes.every((mode) => SSL_MODES.includes(mode))
    ? undefined
    : `postgres must have one sslmode: ${SSL_MODES.join(', ')}.`;
}
