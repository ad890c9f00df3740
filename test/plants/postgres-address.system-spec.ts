/** Leads sessions to another server by a proxy. Needs PostgreSQL, from npm. */
import { OutcomeUnknownError, UnavailableError } from '../../src/plants';
import type { DatabasePlantsRepository } from '../../src/plants/store/database-plants.repository';
import { openRepository } from '../../src/plants/store/stores';
import { errorNumbers } from '../support/error-bodies';
import { useLog } from '../support/log';
import { PostgresServer } from '../support/postgres';
import { TcpProxy } from '../support/proxy';
import { until } from '../support/until';
import { SESSIONS, TABLE } from './postgres-statements';

const TABLES = "SELECT FROM pg_tables WHERE schemaname = 'public'";

describe('the PostgreSQL repository at an address that changes its target', () => {
  let server: PostgresServer;
  let other: PostgresServer;
  let proxy: TcpProxy;
  let repository: DatabasePlantsRepository;
  const { errors } = useLog();
  beforeEach(async () => {
    server = await PostgresServer.start();
    other = await PostgresServer.create();
    proxy = await TcpProxy.start(server.port);
    repository = await openRepository({ postgres: proxy.url });
    await insert(1n);
  });
  afterEach(async () => {
    await repository.onApplicationShutdown();
    await proxy.stop();
    await Promise.all([server.remove(), other.remove()]);
  });

  const insert = (id: bigint) => repository.insert({ id, name: 'Fern' });
  const outcomeOf = (id: bigint) => insert(id).catch((error: unknown) => error);
  const countOf = (text: string) => errors().filter((line) => line.includes(text)).length;

  async function identityOf(each: PostgresServer): Promise<string> {
    const [row] = await each.execute('SELECT identity FROM plants_migrations');
    return String(row?.identity);
  }

  async function expectRejection(reason: string): Promise<void> {
    await until(() => countOf(reason) > 0);
    const before = proxy.accepted;
    await until(() => proxy.accepted > before + 2);
    expect(repository.isReady()).toBe(false);
    await expect(insert(9n)).rejects.toThrow(UnavailableError);
  }

  async function expectRecovery(): Promise<void> {
    proxy.redirect(server.port);
    await until(() => repository.isReady());
    expect(await insert(2n)).toBe('created');
    expect((await server.plants()).map(({ id }) => id)).toEqual([1n, 2n]);
  }

  it.each([
    [
      'another store',
      async () => (await openRepository({ postgres: other.url() })).onApplicationShutdown(),
    ],
    ['a table without an identity', () => other.execute(TABLE)],
  ])('never uses %s, and logs once which store was found', async (_what, prepare) => {
    await other.start();
    await prepare();
    const tables = await other.execute(TABLES);
    const found = tables.length > 1 ? await identityOf(other) : 'without an identity';
    proxy.redirect(other.port);
    proxy.reset();

    const reason = `expected store ${await identityOf(server)}, found store ${found}`;
    await expectRejection(reason);
    expect(await other.plants()).toEqual([]);
    expect(await other.execute(TABLES)).toEqual(tables);
    await expectRecovery();
    expect(countOf(reason)).toBe(1);
  });

  it('rejects a read whose new session is in a database without the store', async () => {
    await other.start();
    const lock = await server.connect();
    await lock.query('BEGIN; LOCK TABLE plants');
    const reading = repository.find(1n);
    const waiting = `${SESSIONS} AND wait_event_type = 'Lock'`;
    await until(async () => (await server.execute(waiting)).length === 1);
    proxy.redirect(other.port);

    const rejected = await repository.find(1n).catch((error: unknown) => error);
    await lock.end();

    expect(String((rejected as Error).cause)).toContain('found no table plants');
    expect(await other.execute(TABLES)).toEqual([]);
    expect(await reading).toMatchObject({ id: 1n });
  });

  it('settles all plants in time when the server becomes unresponsive, and is ready when it responds again', async () => {
    proxy.pause();

    const first = outcomeOf(2n);
    // The batch of the first plant has begun, so the second plant waits for the next batch.
    await new Promise(setImmediate);
    const second = outcomeOf(3n);
    await until(() => !repository.isReady());

    expect(await outcomeOf(4n)).toBeInstanceOf(UnavailableError);
    expect(await first).toBeInstanceOf(OutcomeUnknownError);
    // Its batch needed a new session.
    const message = expect.stringContaining('connection timeout') as string;
    expect(await second).toMatchObject({ error: errorNumbers.unavailable, cause: { message } });
    expect(errors().join()).toContain('a commit takes 2 seconds or more');

    proxy.resume();
    await until(() => repository.isReady());
    expect(await insert(5n)).toBe('created');
  });

  it('does not use a standby in place of an unresponsive server until the standby is promoted', async () => {
    await server.stop('SIGINT');
    const standby = await server.startStandby();
    await until(() => repository.isReady());
    proxy.pause();
    const outcome = outcomeOf(2n);
    await until(() => !repository.isReady());
    proxy.redirect(standby.port);

    await expectRejection('the server is a standby, or read-only: connect to the primary');
    expect(await outcome).toBeInstanceOf(OutcomeUnknownError);
    await standby.execute('SELECT pg_promote()');
    await until(() => repository.isReady());

    expect([await insert(1n), await insert(2n)]).toEqual(['taken', 'created']);
    await standby.remove();
  });
});
