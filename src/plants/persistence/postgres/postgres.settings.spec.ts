import type { ClientConfig } from 'pg';
import { lacksTls } from './postgres.settings';

describe('a connection to PostgreSQL', () => {
  afterEach(() => {
    jest.restoreAllMocks();
  });

  it.each<[string | ClientConfig]>([
    ['postgres://u:p@db.example.org/plants'],
    ['postgres://db/plants?application_name=x'],
    ['postgres:///plants?host=192.0.2.1'],
    [{ host: 'db.example.org' }],
    [{ connectionString: 'postgres://localhost/plants', host: 'db.example.org' }],
  ])('lacks TLS when it leads to another machine and says nothing of it: %j', (where) => {
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
  ])('lacks none when it stays on this machine, or says what is meant: %j', (where) => {
    expect(lacksTls(where)).toBe(false);
  });

  it('lacks none when PGSSLMODE decides', () => {
    jest.replaceProperty(process, 'env', { PGSSLMODE: 'require' });

    expect(lacksTls('postgres://db.example.org/plants')).toBe(false);
  });
});
