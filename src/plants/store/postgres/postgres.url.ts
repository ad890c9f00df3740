/** The sslmodes of libpq except "allow" and "prefer", which may silently fall back to plain text. */
export const SSL_MODES = ['disable', 'require', 'verify-ca', 'verify-full'];

/** Parameters that protect the connection. The driver would ignore other values. */
const CHOICES: Readonly<Record<string, readonly string[]>> = {
  sslmode: SSL_MODES,
  channel_binding: ['disable', 'prefer', 'require'],
  gssencmode: ['disable', 'prefer'],
};

/** Parameters that are whole numbers. The driver would read another value in part, or not at all. */
const NUMBERS = [
  'connect_timeout',
  'idle_in_transaction_session_timeout',
  'keepalives',
  'keepalives_count',
  'keepalives_idle',
  'keepalives_interval',
  'lock_timeout',
  'port',
  'query_timeout',
  'statement_timeout',
  'tcp_user_timeout',
];
/** The largest number of milliseconds that PostgreSQL and a timer can wait. */
const MAX_NUMBER = 2_147_483_647;
/** Smaller maxima: of the port, and of a number of seconds. */
const MAXIMA: Readonly<Record<string, number>> = { port: 65_535, connect_timeout: 2_147_483 };

/** Parameters with other values. */
const STRINGS = [
  'application_name',
  'client_encoding',
  'fallback_application_name',
  'host',
  'load_balance_hosts',
  'options',
  'password',
  'sslcert',
  'sslkey',
  'sslnegotiation',
  'sslrootcert',
  'target_session_attrs',
  'user',
];

/** All parameters. Some are ignored: there is one writable host, text is UTF-8, the service has its own time-outs. */
const PARAMETERS = Object.keys(CHOICES).concat(NUMBERS, STRINGS).toSorted();

const FORM_SENTENCE =
  'postgres must be postgres://USER:PASSWORD@HOST:PORT/DATABASE, with special characters in USER and PASSWORD percent-encoded, and an IPv6 address in brackets.';
const ONE_HOST_SENTENCE =
  'postgres must name one host: put a proxy such as HAProxy in front of several, as docs/postgresql.md shows.';
const PARAMETERS_SENTENCE = `postgres must have no parameters but these, each at most once: ${PARAMETERS.join(', ')}.`;

/**
 * Parses a connection URL without its user and password: a URL may have them without a host, as in
 * `postgres://USER:PASSWORD@/DATABASE?host=/cloudsql/INSTANCE`, but WHATWG's rules do not allow that. They end at the
 * last `@` before the path or the query.
 */
export function parseUrl(url: string): URL | null {
  return URL.parse(url.replace(/^(\w+:\/\/)[^/?#]*@/, '$1'));
}

/**
 * Explains in a sentence why a connection URL (PostgreSQL documentation, 32.1.1.2) is invalid; undefined if it is
 * valid. The sentence contains no part of the URL, which may be part of a password.
 */
export function findUrlError(url: string): string | undefined {
  const { searchParams: parameters, hash } = parseUrl(url) ?? {};
  const hosts = [findHost(url), ...(parameters?.getAll('host') ?? [])];
  // Before the form: several hosts cannot be parsed.
  if (hosts.some((host) => host.includes(','))) return ONE_HOST_SENTENCE;
  if (!/^postgres(ql)?:\/\//.test(url) || !parameters || hash !== '') return FORM_SENTENCE;
  return findParametersError(parameters);
}

/** Returns what stands behind the scheme, the user and the password, before the path or the query. */
function findHost(url: string): string {
  const [, authority = ''] = /^\w+:\/\/([^/?#]*)/.exec(url) ?? [];
  return authority.replace(/.*@/s, '');
}

function findParametersError(parameters: URLSearchParams): string | undefined {
  const names = [...parameters.keys()];
  const areKnown = names.every((name) => PARAMETERS.includes(name));
  const areUnique = new Set(names).size === names.length;
  if (!areKnown || !areUnique) return PARAMETERS_SENTENCE;
  for (const [name, value] of parameters) {
    const error = findValueError(name, value);
    if (error !== undefined) return error;
  }
  const isEncrypted = (parameters.get('sslmode') ?? 'disable') !== 'disable';
  if (parameters.get('channel_binding') !== 'require' || isEncrypted) return undefined;
  return 'postgres must have sslmode=verify-full if it has channel_binding=require.';
}

function findValueError(name: string, value: string): string | undefined {
  const choices = CHOICES[name];
  if (choices && !choices.includes(value)) {
    return `postgres must have one of these values of ${name}: ${choices.join(', ')}.`;
  }
  if (!NUMBERS.includes(name)) return undefined;
  const max = MAXIMA[name] ?? MAX_NUMBER;
  const isWholeNumber = /^\d+$/.test(value);
  if (isWholeNumber && Number(value) <= max) return undefined;
  return `postgres must have a whole number from 0 to ${max} as ${name}.`;
}
