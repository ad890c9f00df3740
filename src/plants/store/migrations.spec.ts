import { MIGRATIONS } from './migrations';

describe('MIGRATIONS', () => {
  it('begin with the steps that created the existing stores, unchanged', () => {
    expect(MIGRATIONS.slice(0, 1)).toEqual([
      {
        sqlite:
          'CREATE TABLE plants (id INTEGER PRIMARY KEY, name TEXT NOT NULL, tag TEXT, idempotency_key BLOB) STRICT',
        postgres:
          'CREATE TABLE IF NOT EXISTS plants (id bigint PRIMARY KEY, name text NOT NULL, tag text, idempotency_key bytea)',
      },
    ]);
  });

  it('create on PostgreSQL only what does not exist', () => {
    for (const { postgres } of MIGRATIONS) expect(postgres).toContain('IF NOT EXISTS');
  });
});
