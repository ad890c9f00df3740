import { Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { OutcomeUnknownError, UnavailableError } from '../../src/plants';
import { PostgresPlantsRepository } from '../../src/plants/persistence/postgres/postgres-plants.repository';
import { PostgresServer } from '../support/postgres';
import { Proxy } from '../support/proxy';
import { until } from '../support/until';

jest.setTimeout(60_000);

/** Milliseconds that any creation may take, whatever happens to the database. */
const LONGEST_ANSWER = 12_000;

/** Of the store that both servers hold. */
const IDENTITY = '6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b';

describe('PostgresPlantsRepository, when a host falls silent', () => {
  let servers: [PostgresServer, PostgresServer];
  let proxies: [Proxy, Proxy];
  let repository: PostgresPlantsRepository;
  let errors: string[];
  beforeAll(async () => {
    servers = [await PostgresServer.start(), await PostgresServer.start()];
  });
  beforeEach(async () => {
    errors = [];
    Logger.overrideLogger({
      error: (line: string) => errors.push(line),
      log: () => undefined,
      warn: () => undefined,
    });
    for (const server of servers) await createStore(server);
    proxies = [await Proxy.start(servers[0].port), await Proxy.start(servers[1].port)];
  });
  afterEach(async () => {
    await repository.onApplicationShutdown();
    for (const server of servers) {
      await server.reconfigure('RESET default_transaction_read_only');
      await server.execute(
        `SET default_transaction_read_only = off;
         DROP TABLE IF EXISTS plants, plants_migrations`,
      );
    }
    for (const proxy of proxies) await proxy.stop();
    Logger.overrideLogger(['error']);
  });
  afterAll(async () => {
    for (const server of servers) await server.remove();
  });

  /** Creates the schema, with the same identity on each server: replicas hold the same store. */
  async function createStore(server: PostgresServer): Promise<void> {
    await (await PostgresPlantsRepository.open(server.url())).onApplicationShutdown();
    await server.execute(`UPDATE plants_migrations SET identity = '${IDENTITY}'`);
  }

  const insert = (id: bigint) => repository.insert({ id, name: 'Fern' });

  /** An insert's outcome or error, which must come in time. */
  async function outcomeOf(id: bigint): Promise<unknown> {
    const start = performance.now();
    const outcome = await insert(id).catch((error: unknown) => error);
    expect(performance.now() - start).toBeLessThan(LONGEST_ANSWER);
    return outcome;
  }

  /** Opens the repository with the first server, or both, and with so many sessions. */
  async function open(hosts: 1 | 2, sessions = 1): Promise<void> {
    const addresses = proxies.slice(0, hosts).map(({ port }) => `127.0.0.1:${port}`);
    const url = `postgres://postgres@${addresses.join()}/postgres`;
    repository = await PostgresPlantsRepository.open(url);
    await Promise.all(Array.from({ length: sessions }, () => repository.find(1n)));
    expect(proxies[0].connections).toBe(sessions);
  }

  /** Lets inserts of the plant with id 1 wait, on the first server, until the lock is released. */
  async function lock(): Promise<{ release: () => Promise<unknown> }> {
    await servers[0].execute(
      `CREATE OR REPLACE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NEW; END $$;
       CREATE TRIGGER hold BEFORE INSERT ON plants
         FOR EACH ROW WHEN (NEW.id = 1) EXECUTE FUNCTION hold()`,
    );
    void servers[0].execute('SELECT pg_advisory_lock(1), pg_sleep(60)').catch(() => undefined);
    const held = "FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    await until(async () => (await servers[0].execute(`SELECT 1 ${held}`)).length === 1);
    return { release: () => servers[0].execute(`SELECT pg_terminate_backend(pid) ${held}`) };
  }

  it.each([1, 2])(
    'uses the other one, sends nothing twice and stays ready, with %i sessions open',
    async (sessions) => {
      await open(2, sessions);
      expect(await insert(1n)).toBe(true);
      proxies[0].silence();

      const late = outcomeOf(2n);
      await setTimeout(100);
      const queued = outcomeOf(3n);

      expect(await late).toBeInstanceOf(OutcomeUnknownError);
      expect(await queued).toBe(true);
      expect(await outcomeOf(4n)).toBe(true);
      expect([repository.isReady(), errors]).toEqual([true, []]);
      expect((await servers[0].plants()).map(({ id }) => id)).toEqual([1n]);
      expect((await servers[1].plants()).map(({ id }) => id)).toEqual([3n, 4n]);
    },
  );

  it('is not disturbed by sessions from before, once the host is in use again', async () => {
    await open(2, 8);
    proxies[0].silence();
    expect(await outcomeOf(1n)).toBeInstanceOf(OutcomeUnknownError);
    proxies[0].resume();
    await servers[1].reconfigure('SET default_transaction_read_only = on');
    await until(async () => (await outcomeOf(BigInt(Date.now()))) instanceof UnavailableError);
    await until(() => repository.isReady());
    expect(await outcomeOf(2n)).toBe(true);
    expect(await servers[0].plants()).toContainEqual({ id: 2n, name: 'Fern' });
    const before = errors.length;

    proxies[0].reset(1);
    // Nothing should happen; this gives it time to.
    await setTimeout(500);

    expect(repository.isReady()).toBe(true);
    expect(errors).toHaveLength(before);
    await servers[1].reconfigure('RESET default_transaction_read_only');
  });

  it('uses another one that takes writes only later', async () => {
    await servers[1].reconfigure('SET default_transaction_read_only = on');
    await open(2);
    proxies[0].silence();
    const late = outcomeOf(1n);
    await until(() => !repository.isReady());

    await expect(insert(2n)).rejects.toThrow(UnavailableError);
    await servers[1].reconfigure('RESET default_transaction_read_only');
    await until(() => repository.isReady());

    expect(await late).toBeInstanceOf(OutcomeUnknownError);
    expect(await insert(3n)).toBe(true);
    expect((await servers[1].plants()).map(({ id }) => id)).toEqual([3n]);
  });

  it.each([1, 2])(
    'is not ready while it waits for the only one, and is used again, with %i sessions open',
    async (sessions) => {
      await open(1, sessions);
      proxies[0].silence();
      const late = outcomeOf(1n);
      await setTimeout(100);
      const queued = outcomeOf(2n);

      await until(() => !repository.isReady());
      const refused = outcomeOf(3n);

      expect(await refused).toBeInstanceOf(UnavailableError);
      expect(await late).toBeInstanceOf(OutcomeUnknownError);
      expect(await queued).toBeInstanceOf(UnavailableError);
      expect(errors[0]).toMatch(
        /^PostgreSQL at .*: the host has stopped answering while a statement waits/,
      );
      proxies[0].resume();
      await until(() => repository.isReady());
      expect(await outcomeOf(4n)).toBe(true);
    },
  );

  it('is used again at once, although a statement from before waits still', async () => {
    await open(1);
    const { release } = await lock();
    const late = outcomeOf(1n);
    // The server has the statement and goes on with it.
    const held = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'advisory'";
    await until(async () => (await servers[0].execute(held)).length === 1);
    proxies[0].silence();
    await until(() => !repository.isReady());

    proxies[0].resume();
    await until(() => repository.isReady());

    // It would take until the tenth second if this one were waited for.
    const soon = setTimeout(3000, 'waits still');
    expect(await Promise.race([late, soon])).toBeInstanceOf(OutcomeUnknownError);
    expect(await outcomeOf(2n)).toBe(true);
    expect(await servers[0].execute(held)).toHaveLength(1);
    await release();
  });

  it('waits for a statement that is late on a host that answers', async () => {
    await open(2);
    const { release } = await lock();

    const late = outcomeOf(1n);
    // Late after the first second, given up after the fifth.
    await setTimeout(2000);

    expect([repository.isReady(), errors]).toEqual([true, []]);
    await release();
    expect(await late).toBe(true);
    expect(await insert(2n)).toBe(true);
    expect((await servers[0].plants()).map(({ id }) => id)).toEqual([1n, 2n]);
  });

  it('is not taken for silent when its name alone does not resolve', async () => {
    let host = '127.0.0.1';
    // Connects to another name than the driver asks for.
    const stream = () => {
      const socket = new Socket();
      const connect = socket.connect.bind(socket) as (port: number, host: string) => Socket;
      return Object.assign(socket, { connect: (port: number) => connect(port, host) });
    };
    const connectionString = servers[0].url();
    repository = await PostgresPlantsRepository.open({ connectionString, stream });
    const { release } = await lock();

    const late = outcomeOf(1n);
    host = 'store.invalid';
    // Longer than a host may be silent.
    await setTimeout(5000);

    expect([repository.isReady(), errors]).toEqual([true, []]);
    await release();
    expect(await late).toBe(true);
  });

  it('uses another one when the first answers, but does not commit for seconds', async () => {
    await open(2);
    const { release } = await lock();

    const late = outcomeOf(1n);
    const queued = outcomeOf(2n);

    expect(await late).toBeInstanceOf(OutcomeUnknownError);
    expect(await queued).toBeInstanceOf(OutcomeUnknownError);
    expect(await insert(3n)).toBe(true);
    expect((await servers[1].plants()).map(({ id }) => id)).toEqual([3n]);
    expect(errors).toEqual([]);
    await release();
  });
});
