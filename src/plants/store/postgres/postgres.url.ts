/** The sslmodes of libpq except "allow" and "prefer", which may silently fall back to plain text. */
export const SSL_MODES = ['disable', 'require', 'verify-ca', 'verify-full'];

/** Parameters of which some values would be ignored, although they protect the connection. */
const RESTRICTED_PARAMETERS = {
  sslmode: SSL_MODES,
  channel_binding: ['disable', 'prefer'],
  gssencmode: ['disable', 'prefer'],
};

const PARAMETERS = [
  ...Object.keys(RESTRICTED_PARAMETERS),
  // The driver, pg-connection-string or this service uses them.
  ...['application_name', 'connect_timeout', 'fallback_application_name', 'host', 'options'],
  ...['password', 'port', 'sslcert', 'sslkey', 'sslnegotiation', 'sslrootcert', 'user'],
  // Only the driver knows them; libpq does not.
  ...['idle_in_transaction_session_timeout', 'lock_timeout', 'query_timeout', 'statement_timeout'],
  // libpq uses them. They can be ignored: there is one host, it must be writable, and all text is UTF-8.
  ...['client_encoding', 'load_balance_hosts', 'target_session_attrs', 'tcp_user_timeout'],
  ...['keepalives', 'keepalives_count', 'keepalives_idle', 'keepalives_interval'],
];

const FORM_SENTENCE =
  'postgres must be postgres://USER:PASSWORD@HOST:PORT/DATABASE, with special characters in USER and PASSWORD percent-encoded, and an IPv6 address in brackets.';
const ONE_HOST_SENTENCE =
  'postgres must name one host: put a proxy such as HAProxy in front of several, as docs/postgresql.md shows.';
const PARAMETERS_SENTENCE = `postgres must have no parameters but these, each at most once: ${PARAMETERS.toSorted().join(', ')}.`;

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
  const names = [...parameters.keys()];
  if (names.some((name, at) => !PARAMETERS.includes(name) || names.indexOf(name) < at)) {
    return PARAMETERS_SENTENCE;
  }
  for (const [name, values] of Object.entries(RESTRICTED_PARAMETERS)) {
    const value = parameters.get(name);
    if (value !== null && !values.includes(value)) {
      return `postgres must have one of these values of ${name}: ${values.join(', ')}.`;
    }
  }
  return undefined;
}
