import type { Duplex } from 'node:stream';
import { PostgresDriver } from './postgres.driver';

describe('PostgresDriver', () => {
  afterEach(() => {
    jest.restoreAllMocks();
  });

  it.each([
    ['postgres://clerk:secret@db.example.org:5433/plants', 'db.example.org:5433/plants'],
    ['postgres://clerk@/plants?host=/run/postgresql', '/run/postgresql:6543/plants'],
    ['postgres://', 'from-pghost:6543/clerk'],
  ])('names the server of %s, with the defaults of the driver, without connecting', (url, name) => {
    const environment = {
      PGHOST: 'from-pghost',
      PGPORT: '6543',
      PGUSER: 'clerk',
      PGSSLMODE: 'disable',
    };
    jest.replaceProperty(process, 'env', environment);
    const stream = jest.fn<Duplex, []>();

    expect(new PostgresDriver({ connectionString: url, stream }).name).toBe(
      `PostgreSQL at ${name}`,
    );
    expect(stream).not.toHaveBeenCalled();
  });
});
