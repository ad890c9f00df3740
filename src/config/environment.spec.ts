import { EnvironmentError, readEnvironment, type Settings } from './environment';

const DIGEST = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';

function faultsOf(environment: NodeJS.ProcessEnv): string {
  try {
    readEnvironment(environment);
  } catch (error) {
    if (error instanceof EnvironmentError) return error.message;
    throw error;
  }
  return '';
}

describe('readEnvironment', () => {
  it('has a default for everything', () => {
    expect(readEnvironment({})).toEqual({
      host: '127.0.0.1',
      port: 3000,
      database: 'data/plants.db',
      auth: { tokenDigests: [] },
      tls: undefined,
      bodyLimit: 1_048_576,
      headersLimit: 16_384,
      maxConnections: 4096,
      rateLimit: undefined,
      headersTimeout: 10_000,
      requestTimeout: 30_000,
      keepAliveTimeout: 65_000,
      shutdownGrace: 0,
      shutdownTimeout: 10_000,
      logLevel: 'info',
      accessLog: false,
      docs: true,
    });
  });

  it('takes an empty variable as not set', () => {
    expect(readEnvironment({ PORT: '', HOST: ' ', AUTH_TOKENS: '' })).toEqual(readEnvironment({}));
  });

  it.each<[NodeJS.ProcessEnv, Partial<Settings>]>([
    [{ PORT: '0' }, { port: 0 }],
    [{ HOST: '::1' }, { host: '::1' }],
    [{ DATABASE_URL: 'sqlite:/var/lib/plants.db' }, { database: '/var/lib/plants.db' }],
    [{ BODY_LIMIT: '2048' }, { bodyLimit: 2048 }],
    [{ BODY_LIMIT: '64 KiB' }, { bodyLimit: 65_536 }],
    [{ BODY_LIMIT: '2MiB' }, { bodyLimit: 2_097_152 }],
    [{ TLS_CERT: 'a.pem', TLS_KEY: 'b.pem' }, { tls: { certificate: 'a.pem', key: 'b.pem' } }],
    [{ HEADERS_LIMIT: '8KiB' }, { headersLimit: 8192 }],
    [{ MAX_CONNECTIONS: '500' }, { maxConnections: 500 }],
    [{ RATE_LIMIT: '100/s' }, { rateLimit: { quota: 100, window: 1 } }],
    [{ RATE_LIMIT: '6 / m' }, { rateLimit: { quota: 6, window: 60 } }],
    [{ RATE_LIMIT: '1/h' }, { rateLimit: { quota: 1, window: 3600 } }],
    [{ REQUEST_TIMEOUT: '60' }, { requestTimeout: 60_000 }],
    [{ REQUEST_TIMEOUT: '2m' }, { requestTimeout: 120_000 }],
    [{ HEADERS_TIMEOUT: '1.5 s' }, { headersTimeout: 1500 }],
    [{ KEEP_ALIVE_TIMEOUT: '250ms' }, { keepAliveTimeout: 250 }],
    [{ SHUTDOWN_GRACE: '0' }, { shutdownGrace: 0 }],
    [{ LOG_LEVEL: 'Debug' }, { logLevel: 'debug' }],
    [
      { ACCESS_LOG: 'TRUE', DOCS: 'false' },
      { accessLog: true, docs: false },
    ],
  ])('reads %j', (environment, settings) => {
    expect(readEnvironment(environment)).toMatchObject(settings);
  });

  it('reads tokens and digests of tokens', () => {
    const { auth } = readEnvironment({ AUTH_TOKENS: `abc, sha256:${DIGEST.toUpperCase()}\n` });

    const digest = Buffer.from(DIGEST, 'hex');
    expect(auth.tokenDigests).toEqual([digest, digest]);
  });

  it.each<NodeJS.ProcessEnv>([
    { PORT: '65536' },
    { PORT: '-1' },
    { PORT: '3000x' },
    { PORT: '1e3' },
    { HOST: 'http://localhost' },
    { DATABASE_URL: 'plants.db' },
    { DATABASE_URL: 'sqlite:' },
    { DATABASE_URL: 'mysql://localhost' },
    { BODY_LIMIT: '0' },
    { BODY_LIMIT: '1GB' },
    { BODY_LIMIT: '999999999 MiB' },
    { TLS_CERT: 'a.pem' },
    { TLS_KEY: 'b.pem' },
    { MAX_CONNECTIONS: '0' },
    { HEADERS_LIMIT: '-1' },
    { RATE_LIMIT: '100' },
    { RATE_LIMIT: '0/s' },
    { RATE_LIMIT: '5/d' },
    { SHUTDOWN_TIMEOUT: '0' },
    { SHUTDOWN_TIMEOUT: '10h' },
    { REQUEST_TIMEOUT: '999999999' },
    { LOG_LEVEL: 'loud' },
    { ACCESS_LOG: 'yes' },
    { DOCS: '1' },
    { AUTH_TOKENS: 'tök' },
    { AUTH_TOKENS: 'sha256:abc' },
    { AUTH_TOKENS: ',' },
    { SHUTDOWN_GRACE: '10', SHUTDOWN_TIMEOUT: '10' },
    { HEADERS_TIMEOUT: '20', REQUEST_TIMEOUT: '10' },
  ])('refuses %j, and names the variable', (environment) => {
    expect(faultsOf(environment)).toContain(Object.keys(environment)[0]);
  });

  it('names every fault at once, one a line', () => {
    expect(faultsOf({ PORT: 'x', DOCS: 'x', BODY_LIMIT: 'x' }).split('\n')).toEqual([
      'PORT must be a port from 0 to 65535',
      'BODY_LIMIT must be a size above zero: bytes, or a number with the unit KiB or MiB',
      'DOCS must be true or false',
    ]);
  });

  it('never shows a secret', () => {
    expect(faultsOf({ AUTH_TOKENS: 'good-secret,bäd-secret' })).not.toContain('secret');
  });

  it('refuses production without tokens', () => {
    expect(faultsOf({ NODE_ENV: 'production' })).toBe(
      'AUTH_TOKENS must be set when NODE_ENV is production',
    );
    expect(faultsOf({ NODE_ENV: 'production', AUTH_TOKENS: 'abc' })).toBe('');
  });

  it('gives a value that nobody changes', () => {
    expect(Object.isFrozen(readEnvironment({}))).toBe(true);
  });
});
