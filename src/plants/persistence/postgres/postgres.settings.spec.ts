import type { ClientConfig } from 'pg';
import { lacksTls } from './postgres.settings';

describe('lacksTls', () => {
  afterEach(() => {
    jest.restoreAllMocks();
  });

  it.each<[string | ClientConfig]>([
    ['postgres://u:p@db.example.org/plants'],
    ['postgres://db/plants?application_name=x'],
    ['postgres:///plants?host=192.0.2.1'],
    [{ host: 'db.example.org' }],
    [{ connectionString: 'postgres://localhost/plants', host: 'db.example.org' }],
  ])('returns true for another machine without TLS options: %j', (where) => {
    expect(lacksTls(where)).toBe(true);
  });

  it.each<[string | ClientConfig]>([
    ['postgres://db.example.org/plants?sslmode=verify-full'],
    ['postgres://db.example.org/plants?ssl=true'],
    [{ host: 'db.example.org', ssl: false }],
    ['postgres://localhost/plants'],
    ['postgres://[::1]/plants'],
    ['postgres:///plants?host=/run/postgresql'],
    ['postgres://%2Frun%2Fpostgresql/plants'],
    [{}],
  ])('returns false for this machine, or with TLS options: %j', (where) => {
    expect(lacksTls(where)).toBe(false);
  });

  it('returns false when PGSSLMODE is set', () => {
    jest.replaceProperty(process, 'env', { PGSSLMODE: 'require' });

    expect(lacksTls('postgres://db.example.org/plants')).toBe(false);
  });
});
