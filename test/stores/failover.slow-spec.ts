import { randomInt } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import fc from 'fast-check';
import { UnavailableError } from '../../src/plants';
import { TOKEN } from '../support/application';
import { makeFolder, removeFolder } from '../support/folder';
import { PostgresPlantsRepository } from '../../src/plants/persistence/postgres/postgres-plants.repository';
import { plantStore } from '../support/plant-store';
import { PersistentClients } from '../support/persistent-clients';
import { PostgresServer } from '../support/postgres';
import { Proxy } from '../support/proxy';
import { ServiceProcess } from '../support/service-process';
import { until } from '../support/until';
import { brokenPromises, Writers } from '../support/writers';

const ROUNDS = 3;
const INSTANCES = 3;
const WRITERS = 48;

/** Milliseconds from the promotion to service, at most. */
const LONGEST_OUTAGE = 12_000;

describe('three instances on a primary with a synchronous standby', () => {
  const seed = Number(process.env.SEED ?? randomInt(2 ** 31));
  /** Milliseconds from the first success to the fault. */
  const lifetimes = fc.sample(fc.integer({ min: 200, max: 2000 }), { seed, numRuns: ROUNDS });

  let folder: string;
  let primary: PostgresServer;
  let standby: PostgresServer;
  /** In front of the primary, for the instances alone. */
  let network: Proxy;
  let services: ServiceProcess[];
  let writers: Writers;
  beforeEach(async () => {
    folder = makeFolder();
    primary = await PostgresServer.make({ synchronous_standby_names: '*' });
    standby = await primary.startStandby();
    network = await Proxy.start(primary.port);
    const hosts = [network, standby].map(({ port }) => `127.0.0.1:${port}`).join();
    services = Array.from(
      { length: INSTANCES },
      () =>
        new ServiceProcess(folder, {
          AUTH_TOKENS: TOKEN,
          DATABASE_URL: `postgres://postgres@${hosts}/postgres?target_session_attrs=read-write`,
        }),
    );
    writers = new Writers(await Promise.all(services.map((service) => service.url())), WRITERS);
  }, 60_000);
  afterEach(async () => {
    await writers.stop();
    for (const service of services) service.kill('SIGKILL');
    await network.stop();
    await standby.remove();
    await primary.remove();
    removeFolder(folder);
  }, 60_000);

  /** Promotes the standby, and waits until a creation succeeds. */
  async function promote(): Promise<void> {
    await standby.execute('SELECT pg_promote()');
    const promoted = Date.now();
    await until(() => writers.hasSucceededSince(promoted), LONGEST_OUTAGE);
  }

  async function expectPromises(): Promise<void> {
    await setTimeout(500);
    await writers.stop();
    expect(brokenPromises(writers.creations, await standby.plants())).toEqual({
      lost: [],
      refusedButStored: [],
      acknowledgedTwice: [],
    });
    for (const service of services) service.kill('SIGTERM');
    expect(await Promise.all(services.map(({ ended }) => ended))).toEqual(
      Array(INSTANCES).fill({ code: 0, signal: null }),
    );
  }

  const faults: [string, () => Promise<void> | void][] = [
    ['is killed', () => primary.stop('SIGKILL')],
    [
      'falls silent',
      () => {
        network.silence();
      },
    ],
  ];

  it.each(faults.flatMap(([what, fail]) => lifetimes.map((after) => ({ what, after, fail }))))(
    `lose no acknowledged plant when the primary $what after $after ms and the standby is promoted (SEED=${seed})`,
    async ({ after, fail }) => {
      await until(() => writers.hasSucceededSince(0));
      await setTimeout(after);

      await fail();
      await until(() => writers.those('refused').length > 0);
      await promote();
      // A silent primary takes writes still, as far as it is concerned. Nobody must go back to it.
      network.resume();

      await expectPromises();
    },
    60_000,
  );

  it('answer 200 to every creation that is repeated with its Idempotency-Key, and store it once', async () => {
    await writers.stop();
    await primary.execute('TRUNCATE plants');
    const clients = new PersistentClients(
      await Promise.all(services.map((service) => service.url())),
      WRITERS,
    );
    await until(() => clients.successes > 500);

    await primary.stop('SIGKILL');
    await setTimeout(500);
    await standby.execute('SELECT pg_promote()');
    const before = clients.successes;
    await until(() => clients.successes > before + 500);
    await clients.stop();

    expect(clients.unexpected).toEqual([]);
    expect(clients.differencesFrom(await standby.plants())).toEqual([]);
  }, 90_000);
});

describe('a URL with several hosts', () => {
  let store: PostgresServer;
  let other: PostgresServer;
  let repository: PostgresPlantsRepository;
  let warnings: string[];
  let errors: string[];
  beforeEach(async () => {
    [store, other] = [await PostgresServer.start(), await PostgresServer.start()];
    repository = await PostgresPlantsRepository.open(store.url());
    await insert(1n);
    [warnings, errors] = [[], []];
    Logger.overrideLogger({
      error: (line: string) => errors.push(line),
      log: () => undefined,
      warn: (line: string) => warnings.push(line),
    });
  }, 60_000);
  afterEach(async () => {
    await repository.onApplicationShutdown();
    for (const server of [store, other]) await server.remove();
    Logger.overrideLogger(['error']);
  });

  const insert = (id: bigint) => repository.insert({ id, name: 'Fern' });
  const urlOf = (servers: PostgresServer[]) =>
    `postgres://postgres@${servers.map(({ port }) => `127.0.0.1:${port}`).join()}/postgres`;
  const tablesOf = (server: PostgresServer) =>
    server.execute("SELECT FROM pg_tables WHERE schemaname = 'public'");

  async function open(...servers: PostgresServer[]): Promise<void> {
    await repository.onApplicationShutdown();
    repository = await PostgresPlantsRepository.open(urlOf(servers));
  }

  const orders: [string, () => PostgresServer[]][] = [
    ['first', () => [other, store]],
    ['second', () => [store, other]],
  ];

  it.each(orders)('of which the %s is empty uses the one with the store', async (_which, order) => {
    const name = `PostgreSQL at 127.0.0.1:${other.port}/postgres`;
    const expectedWarnings = [`${name} is not used: it has no table plants.`];
    await open(...order());
    expect(warnings).toEqual(expectedWarnings);
    expect(await insert(1n)).toBe(false);
    const { stdout } = await plantStore(['check'], { DATABASE_URL: urlOf(order()) });
    expect(stdout).toMatch(/ok {6}store: .* has the store [-\w]{36}\..*\n/);
    expect(stdout).toContain(`${name} has no store.`);

    for (const signal of ['SIGINT', 'SIGKILL'] as const) {
      await store.stop(signal);
      await until(() => !repository.isReady());
      await until(() => errors.some((line) => line.includes('ECONNREFUSED')));
      await store.start();
      await until(() => repository.isReady());
    }

    expect(await insert(2n)).toBe(true);
    expect(await tablesOf(other)).toEqual([]);
    expect(warnings).toEqual(expectedWarnings);
  });

  it.each(orders)(
    'of which the %s is empty makes nothing and waits, if the store is away at the start',
    async (_which, order) => {
      await store.stop();
      await open(...order());

      await expect(insert(1n)).rejects.toThrow(UnavailableError);
      expect(errors.join()).toContain('A store is created only when all hosts answer.');
      expect(await tablesOf(other)).toEqual([]);

      await store.start();
      await until(() => repository.isReady());
      expect(await insert(1n)).toBe(false);
    },
  );

  it.each(orders)('of which the %s is another store uses neither', async (_which, order) => {
    await open(other);
    await open(...order());

    await expect(insert(2n)).rejects.toThrow(UnavailableError);
    const names = [];
    for (const server of order()) {
      const [row] = await server.execute('SELECT identity FROM plants_migrations');
      const name = `PostgreSQL at 127.0.0.1:${server.port}/postgres`;
      names.push(`${name} has the store ${String(row?.identity)}.`);
    }
    const fault = `${names.join(' ')} Name only the hosts of one store.`;
    expect(errors).toEqual([fault]);
    const { stdout } = await plantStore(['check'], { DATABASE_URL: urlOf(order()) });
    expect(stdout).toContain(`FAILED  store: The database cannot be used: ${fault}`);

    await other.execute('DROP TABLE plants, plants_migrations');
    await until(() => repository.isReady());
    expect(await insert(1n)).toBe(false);
  });

  it('makes a store only when all answer', async () => {
    await store.execute('DROP TABLE plants, plants_migrations');
    await other.stop();
    await open(store, other);
    expect(repository.isReady()).toBe(false);
    expect(await tablesOf(store)).toEqual([]);

    await other.start();
    await until(() => repository.isReady());

    expect(await insert(1n)).toBe(true);
    expect(await tablesOf(other)).toEqual([]);
  });

  it('uses a promoted standby, although another store takes writes', async () => {
    await store.stop();
    const standby = await store.startStandby();
    await open(standby, store, other);
    await (await PostgresPlantsRepository.open(other.url())).onApplicationShutdown();

    await store.stop('SIGKILL');
    await until(() => errors.some((line) => line.includes('its identity differs')));
    await standby.execute('SELECT pg_promote()');
    await until(() => repository.isReady());

    expect(await insert(1n)).toBe(false);
    expect(await insert(2n)).toBe(true);
    expect(await other.plants()).toEqual([]);
    await open(store, standby);
    expect(await insert(2n)).toBe(false);
    await standby.remove();
  });
});
