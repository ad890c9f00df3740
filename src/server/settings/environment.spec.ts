import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { useFolder } from '../../../test/support/folder';
import { readEnvironment, type Settings } from './environment';
import { VARIABLES } from './variables';
import { OperatorError } from '../../plants/errors/operator.error';

const ISSUER = { AUTH_ISSUER: 'https://id.example.org', AUTH_AUDIENCE: 'plants' };
const AUTH = { issuer: [ISSUER.AUTH_ISSUER], audience: ['plants'] };
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
  it('returns the defaults when the environment is empty', () => {
    const database = { sqlite: 'data/plants.db' };
    const others = { port: 3000, auth: {}, tls: undefined, rateLimit: undefined };

    expect(readEnvironment({})).toMatchObject({ database, ...others });
  });

  it('treats an empty variable as not set', () => {
    expect(readEnvironment({ PORT: '', HOST: ' ', AUTH_TOKENS: '' })).toEqual(readEnvironment({}));
  });

  it.each<[NodeJS.ProcessEnv, Partial<Settings>]>([
    [{ PORT: '0' }, { port: 0 }],
    [{ HEALTH_PORT: '9090' }, { healthPort: 9090 }],
    [{ HOST: '[::1]' }, { host: '::1' }],
    [{ DATABASE_URL: 'sqlite:/var/lib/plants.db' }, { database: { sqlite: '/var/lib/plants.db' } }],
    ...[
      'postgresql://plants:p%40ss@db.example.org:5433/plants?sslmode=verify-full',
      'postgresql://u:p@ep-a-b.neon.tech/neondb?sslmode=require&channel_binding=require',
      'postgres://plants@[::1]:5433/plants?target_session_attrs=read-write&keepalives_idle=5',
      'postgres://plants@/plants?host=/run&connect_timeout=5&options=-c%20a%3Db&gssencmode=disable',
      'postgres://plants@%2Fvar%2Frun%2Fpostgresql/plants',
    ].map((url): [NodeJS.ProcessEnv, Partial<Settings>] => [
      { DATABASE_URL: url },
      { database: { postgres: url } },
    ]),
    [{ BODY_LIMIT: '1 MiB' }, { bodyLimit: 1_048_576 }],
    [{ TLS_CERT: 'a.pem', TLS_KEY: 'b.pem' }, { tls: { certificate: 'a.pem', key: 'b.pem' } }],
    [{ HEADERS_LIMIT: '2048' }, { headersLimit: 2048 }],
    [{ MAX_CONNECTIONS: '500' }, { maxConnections: 500 }],
    [{ CORS_ORIGINS: 'http://localhost:5173' }, { corsOrigins: ['http://localhost:5173'] }],
    [
      { TRUSTED_PROXIES: '10.0.0.0/8, ::1 fd00::/8' },
      { trustedProxies: ['10.0.0.0/8', '::1', 'fd00::/8'] },
    ],
    [{ RATE_LIMIT: '100/s' }, { rateLimit: { quota: 100, window: 1 } }],
    [{ RATE_LIMIT: '6 / m' }, { rateLimit: { quota: 6, window: 60 } }],
    [{ REQUEST_TIMEOUT: '2m' }, { requestTimeout: 120_000 }],
    [{ HEADERS_TIMEOUT: '1.5 s' }, { headersTimeout: 1500 }],
    [{ KEEP_ALIVE_TIMEOUT: '250ms' }, { keepAliveTimeout: 250 }],
    [{ KEEP_ALIVE_TIMEOUT: '2 h' }, { keepAliveTimeout: 7_200_000 }],
    [{ KEEP_ALIVE_TIMEOUT: '24d' }, { keepAliveTimeout: 2_073_600_000 }],
    [{ SHUTDOWN_GRACE: '5' }, { shutdownGrace: 5000 }],
    [{ LOG_LEVEL: 'Debug' }, { logLevel: 'debug' }],
    [{ ACCESS_LOG: 'TRUE' }, { accessLog: true }],
    [{ DOCS: 'false' }, { docs: false }],
    [{ AUTH_TOKENS_FILE: 'tokens.txt' }, { auth: { tokensFile: 'tokens.txt' } }],
    [
      { ...ISSUER, AUTH_ISSUER: 'https://a , https://b' },
      { auth: { ...AUTH, issuer: ['https://a', 'https://b'] } },
    ],
    [{ ...ISSUER, AUTH_SCOPE: 'a b' }, { auth: { ...AUTH, scope: 'a b' } }],
    [{ ...ISSUER, AUTH_SCOPE_METRICS: 'c' }, { auth: { ...AUTH, metricsScope: 'c' } }],
    [{ ...ISSUER, AUTH_JWKS_URL: 'http://[::1]' }, { auth: { ...AUTH, jwksUrl: 'http://[::1]' } }],
  ])('parses %j', (environment, settings) => {
    expect(readEnvironment(environment)).toMatchObject(settings);
  });

  it('assigns each scope in AUTH_TOKENS to the token before it', () => {
    const { auth } = readEnvironment({
      AUTH_TOKENS: `abc scope=metrics scope=create,sha256:${DIGEST} scope=create\n x`,
    });

    expect(auth.tokens).toEqual([
      'abc scope=metrics scope=create',
      `sha256:${DIGEST} scope=create`,
      'x',
    ]);
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
    ...each('DATABASE_URL', 'plants.db', 'mysql://localhost', 'postgres:plants'),
    ...each('DATABASE_URL', 'postgres://a:secret@localhost:port/p', 'postgres://one:70000/p'),
    // prettier-ignore
    ...[
      '?sslmode=prefer', '?sslmode=verify_full', '?sslmode=verify-full&sslmode=disable',
      '#sslmode=require',
    ].map((end) => ({ DATABASE_URL: `postgres://localhost/plants${end}` })),
    { DATABASE_URL_FILE: 'postgres://a:secret@b:port/c' },
    ...each('BODY_LIMIT', '0', '1GB', '999999999 MiB'),
    ...alone({ TLS_CERT: 'a.pem', TLS_KEY: 'b.pem', MAX_CONNECTIONS: '0' }),
    ...each('CORS_ORIGINS', '*', 'null', 'app.example.org', 'https://app.example.org/'),
    ...each('CORS_ORIGINS', 'https://App.example.org', 'https://app.example.org:443'),
    ...each('CORS_ORIGINS', 'https://*.example.org/a', 'https://*.example.org', 'ftp://a.org'),
    ...each('TRUSTED_PROXIES', 'true', '10', '0.0.0.0/0', '10.0.0.0/33', 'proxy', 'loopback', ','),
    ...each('RATE_LIMIT', '100', '0/s', '5/d'),
    ...alone({ SHUTDOWN_TIMEOUT: '25d', KEEP_ALIVE_TIMEOUT: '0', REQUEST_TIMEOUT: '999999999' }),
    ...alone({ LOG_LEVEL: 'loud', ACCESS_LOG: 'yes', DOCS: 'constructor' }),
    ...each('AUTH_TOKENS', 'valid-secret,bäd-secret', ',', 'scope=create', 'abc scope='),
    ...each('AUTH_TOKENS', 'abc scope=Create', 'abc#secret'),
    ...alone({ AUTH_AUDIENCE: 'plants', AUTH_SCOPE: 'plants', AUTH_SCOPE_METRICS: 'plants' }),
    ...alone({ AUTH_ISSUER: 'https://id.org', AUTH_JWKS_URL: 'https://id.org/keys' }),
    // prettier-ignore
    ...[
      'id.example.org', 'http://id.example.org', 'https://user:secret@id.example.org',
      'http://127.0.0.1.example.org', 'ftp://127.0.0.1', 'https://id.example.org/?tenant=1',
      'https://a.example https://b.example/?tenant=1', ',',
    ].map((url) => ({ AUTH_ISSUER: url, AUTH_AUDIENCE: 'plants' })),
    { AUTH_JWKS_URL: 'http://id.example.org/keys', ...ISSUER },
    ...each('AUTH_SCOPE', '"plants"', 'pl\\ants', 'plänts', 'a\nb').map((s) => ({
      ...s,
      ...ISSUER,
    })),
    { AUTH_SCOPE_METRICS: '"plants"', ...ISSUER },
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
      'sslmode=verify-full&sslmode=verify-full', 'port=1&port=1', 'dbname=other', 'pa?ss@b=c',
      'require_auth=scram-sha-256', 'sslcrl=a.pem', 'requirepeer=postgres', 'sslrootcert=a&Client=b',
    ].map((end) => [`postgres://a/b?${end}`, 'DATABASE_URL must have no parameters but these, ']),
    ...['sslmode=no-verify', 'sslmode=', 'channel_binding=on', 'gssencmode=require'].map((end) => [
      `postgres://a/b?${end}`,
      `DATABASE_URL must have one of these values of ${end.split('=')[0]}: disable, `,
    ]),
    ...[
      'connect_timeout=abc', 'connect_timeout=', 'connect_timeout=-1', 'connect_timeout=1.5',
      'connect_timeout=1e3', 'connect_timeout=9999999', 'statement_timeout=5s', 'lock_timeout=%205',
      'query_timeout=-5', 'idle_in_transaction_session_timeout=1min', 'keepalives_idle=x', 'port=',
      'port=5432x', 'port=65536',
    ].map((end) => [`postgres://a/b?${end}`, 'DATABASE_URL must have a whole number from 0 to ']),
    ...['', '&sslmode=disable'].map((end) => [
      `postgres://a/b?channel_binding=require${end}`,
      'DATABASE_URL must have sslmode=verify-full if it has channel_binding=require.',
    ]),
    [
      'postgres://a:b@::1:5432/p',
      'DATABASE_URL must be postgres://USER:PASSWORD@HOST:PORT/DATABASE, ',
    ],
    ['postgres://one:5432,[::1]:5433/plants', 'DATABASE_URL must name one host: '],
    ['postgres:///plants?host=one,two', 'DATABASE_URL must name one host: '],
    [
      'sqlite::memory:',
      'DATABASE_URL must be the path of a file, such as data/plants.db, without ',
    ],
    [
      'sqlite:file:p.db',
      'DATABASE_URL must be the path of a file, such as data/plants.db, without ',
    ],
    ['sqlite:plants.db?mode=ro', 'DATABASE_URL must not have parameters after its path'],
    ['sqlite:', 'DATABASE_URL must name a file, such as data/plants.db'],
    [
      'sqlite://data/plants.db',
      'DATABASE_URL must not begin with two slashes: write data/plants.db ',
    ],
    [
      'sqlite:///data/plants.db',
      'DATABASE_URL must not begin with two slashes: write data/plants.db ',
    ],
    ['sqlite:~/plants.db', 'DATABASE_URL must not begin with ~, $ or a quotation mark, '],
    ['sqlite:"data/p.db"', 'DATABASE_URL must not begin with ~, $ or a quotation mark, '],
    ['sqlite:${HOME}/plants.db', 'DATABASE_URL must not begin with ~, $ or a quotation mark, '],
    ['sqlite:data/', 'DATABASE_URL must name a file, not a directory: '],
    ['sqlite:..', 'DATABASE_URL must name a file, not a directory: '],
  ])('rejects the URL %s with the reason', (url = '', reason = '') => {
    const error = findError({ DATABASE_URL: url });

    expect(error.startsWith(reason)).toBe(true);
    expect(error).not.toContain('\n');
  });

  describe('DATABASE_URL_FILE', () => {
    const file = join(useFolder(), 'secret');

    it('is read again for each new pool, and throws when it contains a SQLite URL', () => {
      writeFileSync(file, 'postgres://a:old@localhost/plants\n');
      const { database } = readEnvironment({ DATABASE_URL_FILE: file });
      const { postgres } = database as { postgres: () => string };
      expect(postgres()).toBe('postgres://a:old@localhost/plants');

      writeFileSync(file, 'postgres://a:50%off@elsewhere/plants');
      expect(postgres()).toBe('postgres://a:50%off@elsewhere/plants');
      writeFileSync(file, 'sqlite:plants.db');
      expect(postgres).toThrow('DATABASE_URL_FILE now contains the URL of another kind of store');
    });

    it('is rejected when DATABASE_URL is set too', () => {
      expect(findError({ DATABASE_URL: 'sqlite:a.db', DATABASE_URL_FILE: file })).toBe(
        'DATABASE_URL_FILE and DATABASE_URL must not both be set.',
      );
    });

    it.each([
      ['postgres://a:secret@b:port/c', /^DATABASE_URL_FILE must be postgres:/],
      ['', /^DATABASE_URL_FILE must be sqlite:PATH/],
      ['"sqlite:p.db"\n', /^DATABASE_URL_FILE must not be in quotation marks: /],
      [undefined, /^DATABASE_URL_FILE cannot be read: no such file or directory\.$/],
    ])('is rejected when the file contains %j', (content, reason) => {
      if (content !== undefined) writeFileSync(file, content);

      expect(findError({ DATABASE_URL_FILE: file })).toMatch(reason);
      expect(findError({ DATABASE_URL_FILE: file })).not.toContain('secret@');
    });
  });

  it('rejects unknown AUTH_ variables, except those that Kubernetes sets for a Service', () => {
    const links = {
      AUTH_SERVICE_HOST: '10.0.0.1',
      AUTH_DB_PORT_80_TCP: 'x',
      AUTH_SERVICE_PORT: '80',
    };

    const error = findError({ AUTH_TOKEN: 'secret', AUTH_SCOPES: 'x', AUTH_EMPTY: ' ', ...links });

    expect(error.split('\n')).toEqual([
      'AUTH_TOKEN is not a variable of the service: correct its name, or unset it.',
      'AUTH_SCOPES is not a variable of the service: correct its name, or unset it.',
    ]);
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
      { ...ISSUER, AUTH_ISSUER: 'https://a https://b', AUTH_JWKS_URL: 'https://a/keys' },
      'AUTH_JWKS_URL requires a single AUTH_ISSUER.',
    ],
  ])('rejects %j with a sentence that names both variables', (environment, sentence) => {
    expect(findError(environment)).toBe(sentence);
  });

  it.each<[NodeJS.ProcessEnv, string]>([
    [{}, 'AUTH_TOKENS, AUTH_TOKENS_FILE or AUTH_ISSUER must be set when NODE_ENV is production.'],
    [
      { AUTH_TOKENS: 'bäd' },
      expect.stringMatching(/^AUTH_TOKENS is invalid: token 1 must .*\.$/) as string,
    ],
    [{ AUTH_TOKENS: 'abc' }, ''],
    [{ AUTH_TOKENS_FILE: 'tokens.txt' }, ''],
    [ISSUER, ''],
    [
      { ...ISSUER, DATABASE_URL: 'postgres://u:secret@db%zz.example.org/plants' },
      'DATABASE_URL must have sslmode for a server on another machine when NODE_ENV is production: sslmode=verify-full, or sslmode=disable to send plants in plain text.',
    ],
    [{ ...ISSUER, DATABASE_URL: 'postgres://db.example.org/plants?sslmode=disable' }, ''],
    [{ ...ISSUER, DATABASE_URL: 'postgres://localhost/plants' }, ''],
  ])('requires tokens and sslmode in production: %j', (environment, error) => {
    expect(findError({ NODE_ENV: 'production', ...environment })).toEqual(error);
  });
});
