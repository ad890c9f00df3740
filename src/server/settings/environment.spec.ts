import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { useFolder } from '../../../test/support/folder';
import { OperatorError } from '../../plants/errors/operator.error';
import { readEnvironment } from './environment';
import { VARIABLES } from './variables';

const ISSUER = { AUTH_ISSUER: 'https://id.example.org', AUTH_AUDIENCE: 'plants' };
const file = join(useFolder(), 'url');
const DIGEST = '0'.repeat(64);

function findError(environment: NodeJS.ProcessEnv): string {
  try {
    readEnvironment(environment);
  } catch (error) {
    if (error instanceof OperatorError) return error.message;
    throw error;
  }
  return '';
}

describe('readEnvironment', () => {
  it('returns the defaults when the variables are empty or not set', () => {
    const database = { sqlite: 'data/plants.db' };
    const others = { port: 3000, auth: {}, tls: undefined, rateLimit: undefined };

    expect(readEnvironment({})).toMatchObject({ database, ...others });
    expect(readEnvironment({ PORT: '', HOST: ' ', AUTH_TOKENS: '' })).toEqual(readEnvironment({}));
  });

  it('parses every variable', () => {
    const environment = {
      HOST: '[::1]',
      PORT: '0',
      TLS_CERT: 'a.pem',
      TLS_KEY: 'b.pem',
      LOG_LEVEL: 'Debug',
      HEADERS_TIMEOUT: '1.5 s',
      REQUEST_TIMEOUT: '2m',
      KEEP_ALIVE_TIMEOUT: '24d',
      BODY_LIMIT: '1 MiB',
      HEADERS_LIMIT: '2048',
      ACCESS_LOG: 'TRUE',
      DOCS: 'false',
      TRUSTED_PROXIES: '10.0.0.0/8, ::1\tf::/8',
      CORS_ORIGINS: 'http://localhost:5173',
      SHUTDOWN_GRACE: '250ms',
      SHUTDOWN_TIMEOUT: '5',
      RATE_LIMIT: '6 / m',
      AUTH_TOKENS_FILE: 'tokens.txt',
      AUTH_SCOPE: 'a b',
      AUTH_SCOPE_METRICS: 'c',
      AUTH_ISSUER: 'https://a , https://b',
      AUTH_AUDIENCE: 'plants',
      AUTH_TOKENS: `abc scope=metrics, scope=create,sha256:${DIGEST} scope=create\n x`,
    };
    const tokens = ['abc scope=metrics scope=create', `sha256:${DIGEST} scope=create`, 'x'];
    const issuer = ['https://a', 'https://b'];

    expect(readEnvironment(environment)).toMatchObject({
      host: '::1',
      port: 0,
      tls: { certificate: 'a.pem', key: 'b.pem' },
      logLevel: 'debug',
      headersTimeout: 1500,
      requestTimeout: 120_000,
      keepAliveTimeout: 2_073_600_000,
      bodyLimit: 1_048_576,
      headersLimit: 2048,
      accessLog: true,
      docs: false,
      trustedProxies: ['10.0.0.0/8', '::1', 'f::/8'],
      corsOrigins: ['http://localhost:5173'],
      shutdownGrace: 250,
      shutdownTimeout: 5000,
      rateLimit: { quota: 6, window: 60 },
      auth: {
        tokens,
        tokensFile: 'tokens.txt',
        scope: 'a b',
        metricsScope: 'c',
        issuer,
        audience: ['plants'],
      },
    });
  });

  it('accepts the origins of apps as they send them', () => {
    const corsOrigins = ['tauri://localhost', 'capacitor://localhost', 'chrome-extension://abc'];

    expect(readEnvironment({ CORS_ORIGINS: corsOrigins.join(' ') })).toMatchObject({ corsOrigins });
  });

  it.each([
    ['https://bücher.example', 'https://xn--bcher-kva.example'],
    ['https://app.example.org:443', 'https://app.example.org'],
    ['https://App.example.org', 'https://app.example.org'],
    ['https://app.example.org/', 'https://app.example.org'],
  ])('says for the origin %s what a browser sends', (written, sent) => {
    const read = () => readEnvironment({ CORS_ORIGINS: `https://a.example ${written}` });

    expect(read).toThrow(`For ${written}, a browser sends ${sent}.`);
  });

  it('says that the range of all addresses cannot be trusted', () => {
    const read = () => readEnvironment({ TRUSTED_PROXIES: '0.0.0.0/0' });

    expect(read).toThrow('with a prefix of at least 1');
  });

  it('reads scopes only in the list of tokens', () => {
    const environment = {
      ...ISSUER,
      AUTH_AUDIENCE: 'plants scope=x',
      AUTH_TOKENS: 'a scope=metrics',
    };

    expect(readEnvironment(environment).auth).toMatchObject({
      audience: ['plants', 'scope=x'],
      tokens: ['a scope=metrics'],
    });
  });

  it.each([
    'postgresql://plants:p%40ss@db.example.org:5433/plants?sslmode=verify-full',
    'postgresql://u:p@ep-a-b.neon.tech/neondb?sslmode=require&channel_binding=require',
    'postgres://plants@[::1]:5433/plants?target_session_attrs=read-write&keepalives_idle=5',
    'postgres://plants@/plants?host=/run&connect_timeout=5&options=-c%20a%3Db&gssencmode=disable',
    'postgres://plants@%2Fvar%2Frun%2Fpostgresql/plants',
    'postgres://localhost/plants?statement_timeout=7200000&tcp_user_timeout=2147483647',
  ])('accepts the URL %s', (url) => {
    expect(readEnvironment({ DATABASE_URL: url }).database).toEqual({ postgres: url });
  });

  /** Creates an environment for each value of a variable. */
  const each = (name: string, ...values: string[]): NodeJS.ProcessEnv[] =>
    values.map((value) => ({ [name]: value }));
  /** Creates an environment for each variable. */
  const alone = (variables: Record<string, string>): NodeJS.ProcessEnv[] =>
    Object.entries(variables).flatMap(([name, value]) => each(name, value));

  it.each<NodeJS.ProcessEnv>([
    ...each('PORT', '65536', '-1', '3000x', '1e3', 'tcp://10.43.161.118:80'),
    ...each('HOST', 'http://localhost', '[::1', '[localhost]'),
    ...each('DATABASE_URL', 'plants.db', 'mysql://a', 'postgres:plants', 'postgres://a/b#c'),
    ...each('DATABASE_URL', 'postgres://a:secret@localhost:port/p', 'postgres://one:70000/p'),
    { DATABASE_URL_FILE: 'postgres://a:secret@b:port/c' },
    ...each('BODY_LIMIT', '0', '1GB', '999999999 MiB'),
    ...alone({ TLS_CERT: 'a.pem', TLS_KEY: 'b.pem', MAX_CONNECTIONS: '0' }),
    ...each('CORS_ORIGINS', '*', 'null', 'app.example.org', 'https://app.example.org/'),
    ...each('CORS_ORIGINS', 'https://App.example.org', 'https://*.example.org', 'ftp://a.org'),
    ...each('TRUSTED_PROXIES', 'true', '10', '0.0.0.0/0', '10.0.0.0/33', 'proxy', ','),
    ...each('RATE_LIMIT', '100', '0/s', '5/d'),
    ...alone({ SHUTDOWN_TIMEOUT: '25d', KEEP_ALIVE_TIMEOUT: '0', REQUEST_TIMEOUT: '999999999' }),
    ...alone({ LOG_LEVEL: 'loud', ACCESS_LOG: 'yes', DOCS: 'constructor' }),
    ...each('AUTH_TOKENS', 'valid-secret,bäd-secret', ',', 'scope=create', 'abc scope='),
    ...each('AUTH_TOKENS', 'abc scope=Create', 'abc scope=create,metrics', 'abc#secret'),
    ...alone({ AUTH_AUDIENCE: 'plants', AUTH_SCOPE: 'plants', AUTH_SCOPE_METRICS: 'plants' }),
    ...alone({ AUTH_ISSUER: 'https://id.org', AUTH_JWKS_URL: 'https://id.org/keys' }),
    // prettier-ignore
    ...each(
      'AUTH_ISSUER', 'id.example.org', 'http://id.example.org', 'https://user:secret@id.example.org',
      'http://127.0.0.1.example.org', 'ftp://127.0.0.1', 'https://a https://b/?tenant=1', ',',
      'http://127.0.0.1:10080/realms/garden',
    ).map((issuer) => ({ ...issuer, AUTH_AUDIENCE: 'plants' })),
    { AUTH_JWKS_URL: 'http://id.example.org/keys', ...ISSUER },
    { AUTH_JWKS_URL: 'http://localhost:10080/keys', ...ISSUER },
    { AUTH_JWKS_URL: 'https://a/keys', AUTH_ISSUER: 'https://a https://b', AUTH_AUDIENCE: 'x' },
    ...each('AUTH_SCOPE', 'a "b"', 'pl\\ants', 'plänts', 'a\nb').map((scope) => ({
      ...scope,
      ...ISSUER,
    })),
    { SHUTDOWN_GRACE: '10', SHUTDOWN_TIMEOUT: '10' },
    { HEADERS_TIMEOUT: '20', REQUEST_TIMEOUT: '10' },
  ])('rejects %j with an error that names the variable and shows no secret', (environment) => {
    const error = findError(environment);

    expect(error).toContain(Object.keys(environment)[0]);
    expect(error).not.toContain('secret');
  });

  // prettier-ignore
  it.each([
    ...[
      'sslmod=require', 'SSLMODE=require', 'sslmode%20=require', 'ssl=true', 'host=a&host=b',
      'sslmode=verify-full&sslmode=disable', 'port=1&port=1', 'dbname=other', 'pa?ss@b=c',
      'require_auth=scram-sha-256', 'sslcrl=a.pem', 'sslrootcert=a&Client=b',
    ].map((end) => [`postgres://a/b?${end}`, 'no parameters but these, ']),
    ...['sslmode=no-verify', 'sslmode=', 'channel_binding=on', 'gssencmode=require'].map((end) => [
      `postgres://a/b?${end}`, `one of these values of ${end.split('=')[0]}: disable, `,
    ]),
    ...[
      'connect_timeout=abc', 'connect_timeout=', 'connect_timeout=-1', 'connect_timeout=1.5',
      'connect_timeout=1e3', 'connect_timeout=9999999', 'statement_timeout=5s', 'lock_timeout=%205',
      'query_timeout=-5', 'idle_in_transaction_session_timeout=1min', 'keepalives_idle=x', 'port=',
      'port=5432x', 'port=65536', 'lock_timeout=2147483648',
    ].map((end) => [`postgres://a/b?${end}`, 'a whole number from 0 to ']),
    ...['', '&sslmode=disable'].map((end) => [
      `postgres://a/b?channel_binding=require${end}`, 'sslmode=verify-full if it has channel_binding=require.',
    ]),
    ['postgres://a:b@::1:5432/p', 'an IPv6 address in brackets'],
    ['postgres://one:5432,[::1]:5433/plants', 'must name one host: '],
    ['postgres:///plants?host=one,two', 'must name one host: '],
    ...['sqlite::memory:', 'sqlite:file:p.db'].map((url) => [url, 'must be the path of a file, ']),
    ['sqlite:plants.db?mode=ro', 'must not have parameters after its path'],
    ['sqlite:', 'must name a file, such as data/plants.db'],
    ...['sqlite://data/p.db', 'sqlite:///data/p.db'].map((url) => [url, 'two slashes: write data/p.db ']),
    ...['~/p.db', '"data/p.db"', '${HOME}/p.db'].map((path) => [`sqlite:${path}`, 'must not begin with ~, $ ']),
    ...['sqlite:data/', 'sqlite:..'].map((url) => [url, 'must name a file, not a directory: ']),
  ])('rejects the URL %s with the reason', (url = '', reason = '') => {
    expect(findError({ DATABASE_URL: url })).toMatch(/^DATABASE_URL must .*\.$/);
    expect(findError({ DATABASE_URL: url })).toContain(reason);
  });

  it.each([
    ['postgres://a:secret@b:port/c', /^DATABASE_URL_FILE must be postgres:/],
    ['', /^DATABASE_URL_FILE must be sqlite:PATH/],
    ['"sqlite:p.db"\n', /^DATABASE_URL_FILE must not be in quotation marks: /],
  ])('rejects a DATABASE_URL_FILE that contains %j', (content, reason) => {
    writeFileSync(file, content);

    expect(findError({ DATABASE_URL_FILE: file })).toMatch(reason);
    expect(findError({ DATABASE_URL_FILE: file })).not.toContain('secret@');
  });

  it('rejects unknown AUTH_ variables, except those that Kubernetes sets for a Service', () => {
    const links = {
      AUTH_SERVICE_HOST: '10.0.0.1',
      AUTH_DB_PORT_80_TCP: 'x',
      AUTH_SERVICE_PORT: '1',
      AUTH_SERVICE_PORT_HTTP_2: '1',
      AUTH_PORT: 'tcp://10.0.0.1:80',
      AUTH_PORT_80_TCP_ADDR: '10.0.0.1',
      AUTH_PORT_53_UDP_PROTO: 'udp',
      AUTH_PORT_9_SCTP_PORT: '9',
    };

    expect(findError({ AUTH_TOKEN: 'secret', AUTH_EMPTY: ' ', ...links })).toBe(
      'AUTH_TOKEN is not a variable of the service: correct its name, or unset it.',
    );
  });

  it.each([
    'AUTH_PORTAL_TOKENS',
    'AUTH_PORT_TOKENS',
    'AUTH_PORT_80',
    'AUTH_PORT_80_TCP_TOKENS',
    'AUTH_SERVICE_HOSTS',
    'AUTH_SERVICE_PORTS',
  ])('rejects %s, which only begins like a variable of Kubernetes', (name) => {
    expect(findError({ [name]: 'x' })).toContain(`${name} is not a variable of the service`);
  });

  it.each(VARIABLES.map(({ name }) => name))('rejects quotation marks around %s', (name) => {
    for (const value of ['"x"', "'x y'", ' `x` ', '"']) {
      expect(findError({ [name]: value })).toContain(`${name} must not be in quotation marks: `);
    }
  });

  it('reports all invalid variables, one per line, with the expected value', () => {
    const invalid = { PORT: 'x', DOCS: 'x', BODY_LIMIT: 'x', AUTH_AUDIENCE: ',' };

    expect(findError(invalid).split('\n')).toEqual([
      'PORT must be a port from 0 to 65535.',
      'BODY_LIMIT must be a size above zero and up to 256 MiB: bytes, or a number with the unit KiB or MiB.',
      'DOCS must be true or false.',
      'AUTH_AUDIENCE must be a list of audiences, separated by commas or white space.',
    ]);
  });

  it.each([
    [{ AUTH_ISSUER: 'https://id.org' }, 'AUTH_ISSUER requires AUTH_AUDIENCE.'],
    [{ AUTH_SCOPE: 'create' }, 'AUTH_SCOPE requires AUTH_ISSUER.'],
    [
      { DATABASE_URL: 'sqlite:a.db', DATABASE_URL_FILE: 'secret' },
      'DATABASE_URL_FILE and DATABASE_URL must not both be set.',
    ],
  ])('rejects %j with a sentence that names both variables', (environment, sentence) => {
    expect(findError(environment)).toBe(sentence);
  });

  it.each([
    [
      {},
      /^AUTH_TOKENS, AUTH_TOKENS_FILE or AUTH_ISSUER must be set when NODE_ENV is production\.$/,
    ],
    [{ AUTH_TOKENS: 'bäd' }, /^AUTH_TOKENS is invalid: token 1 must .*\.$/],
    [{ AUTH_TOKENS_FILE: 'tokens.txt' }, /^$/],
    [ISSUER, /^$/],
    [
      { ...ISSUER, DATABASE_URL: ' ' },
      /^DATABASE_URL or DATABASE_URL_FILE must be set when NODE_ENV is production\.$/,
    ],
    [
      { ...ISSUER, DATABASE_URL: 'postgres://u:secret@db%zz.example.org/plants' },
      /^DATABASE_URL must have sslmode for a server on another machine when NODE_ENV is production: /,
    ],
    [{ ...ISSUER, DATABASE_URL: 'postgres://db.example.org/plants?sslmode=disable' }, /^$/],
    [{ ...ISSUER, DATABASE_URL: 'postgres://localhost/plants' }, /^$/],
  ])('requires tokens, a store and sslmode in production: %j', (environment, error) => {
    const production = { NODE_ENV: 'production', DATABASE_URL: 'sqlite:plants.db' };
    expect(findError({ ...production, ...environment })).toMatch(error);
  });
});
