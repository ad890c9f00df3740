import type { ClientConfig } from 'pg';
import { OptionError } from '../../errors/operator.error';
import { lacksTls, readPoolConfig } from './postgres.settings';

afterEach(() => {
  jest.restoreAllMocks();
});

describe('lacksTls', () => {
  it.each<[boolean, string | ClientConfig, string?]>([
    [true, 'postgres://u:p@db.example.org/plants'],
    [true, 'postgres:///plants?host=192.0.2.1'],
    [true, { connectionString: 'postgres://localhost/plants', host: 'db.example.org' }],
    [false, 'postgres://db.example.org/plants?sslmode=verify-full'],
    [false, { host: 'db.example.org', ssl: false }],
    [false, 'postgres://[::1]/plants'],
    [false, 'postgres://u:p@/plants?host=/run/postgresql'],
    [false, 'postgres://%2Frun%2Fpostgresql/plants'],
    [false, {}],
    [false, 'postgres://db.example.org/plants', 'require'],
    [true, 'postgres://db.example.org/plants', 'verify_full'],
  ])('returns %s for %j with PGSSLMODE %s', (...[expected, where, mode]) => {
    jest.replaceProperty(process, 'env', mode === undefined ? {} : { PGSSLMODE: mode });

    expect(lacksTls(where)).toBe(expected);
  });
});

describe('readPoolConfig', () => {
  it('overrides the URL by other settings', () => {
    const connectionString =
      'postgres://nobody@/plants?host=/cloudsql/a:b:c&port=5433&connect_timeout=0';

    expect(readPoolConfig({ connectionString, user: 'clerk' })).toMatchObject({
      host: '/cloudsql/a:b:c',
      port: 5433,
      user: 'clerk',
      connectionTimeoutMillis: 2000,
      database: 'plants',
    });
  });

  it.each([
    ['require', true],
    ['prefer', true],
    ['disable', false],
  ])('with channel_binding=%s sets enableChannelBinding to %s', (binding, isEnabled) => {
    const url = `postgres://localhost/plants?sslmode=require&channel_binding=${binding}`;

    expect(readPoolConfig(url).enableChannelBinding).toBe(isEnabled);
  });

  it.each(['verify_full', 'prefer', 'no-verify', ' require', 'Disable'])(
    'rejects PGSSLMODE=%s only if the URL has no sslmode',
    (mode) => {
      jest.replaceProperty(process, 'env', { PGSSLMODE: mode });

      expect(() => readPoolConfig('postgres://localhost/plants')).toThrow(OptionError);
      expect(readPoolConfig('postgres://localhost/plants?sslmode=disable').ssl).toBe(false);
    },
  );
});
