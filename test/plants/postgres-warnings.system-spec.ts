/** Which routine of PostgreSQL, from npm, emits a warning. Nothing else tells its warnings apart. */
import { Client } from 'pg';
import { isAboutCommit } from '../../src/plants/store/postgres/postgres.warnings';
import { PostgresServer } from '../support/postgres';

describe('isAboutCommit', () => {
  let server: PostgresServer;
  let session: Client;
  beforeAll(async () => {
    server = await PostgresServer.start();
    session = new Client(server.url());
    await session.connect();
  });
  afterAll(async () => {
    await session.end();
    await server.remove();
  });

  it.each([
    [false, 'a warning of PL/pgSQL, as in a trigger', "DO $$ BEGIN RAISE WARNING 'x'; END $$"],
    [false, 'a notice that is no warning', 'DROP TABLE IF EXISTS nothing'],
    [true, 'a warning of any other routine', 'SELECT pg_terminate_backend(2147483647)'],
  ])('returns %j for %s', async (expected, _what, statement) => {
    const found: boolean[] = [];
    session.on('notice', (notice) => {
      found.push(isAboutCommit({ code: notice.code, routine: notice.routine }));
    });

    await session.query(statement);

    session.removeAllListeners('notice');
    expect(found).toEqual([expected]);
  });
});
