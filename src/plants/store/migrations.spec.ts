import { MIGRATIONS } from './migrations';

describe('MIGRATIONS', () => {
  it('are unchanged, because they created the existing stores', () => {
    expect(MIGRATIONS).toEqual([
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
