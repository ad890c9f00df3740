import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { PostgresPlantsRepository } from '../../src/plants/persistence/postgres/postgres-plants.repository';
import { freePort } from '../support/free-port';
import { PersistentClients } from '../support/persistent-clients';
import { PostgresServer } from '../support/postgres';
import { recordProcess } from '../support/run-folder';
import { type ServiceProcess, useServiceHome } from '../support/service-process';
import { until } from '../support/until';
import { brokenPromises, create, Writers } from '../support/writers';

/**
 * A service behind HAProxy, as docs/postgresql.md configures it. It needs Debian's haproxy.
 *
 * @alone
 */

const CLIENTS = 32;
const PAGE = join(__dirname, '../../docs/postgresql.md');

describe('the service with PostgreSQL behind HAProxy', () => {
  const home = useServiceHome();
  let proxy: ChildProcess | undefined;
  let servers: PostgresServer[];
  let checks: Server[];
  let service: ServiceProcess;
  beforeAll(() => {
    Logger.overrideLogger(['error']);
  });
  beforeEach(() => {
    [servers, checks] = [[], []];
  });
  afterEach(async () => {
    if (proxy?.exitCode === null) {
      proxy.kill('SIGTERM');
      await once(proxy, 'close');
    }
    for (const check of checks) check.close();
    for (const server of servers.reverse()) await server.remove();
  });

  /** A primary and its synchronous standby. */
  async function startPair(): Promise<[primary: PostgresServer, standby: PostgresServer]> {
    const primary = await PostgresServer.make({ synchronous_standby_names: '*' });
    const standby = await primary.startStandby();
    servers.push(primary, standby);
    return [primary, standby];
  }

  /**
   * Starts the proxy in front of servers, and the service.
   *
   * @param isUsed whether the proxy leads to a server
   */
  async function start(
    behind: readonly PostgresServer[],
    isUsed: (server: PostgresServer) => boolean | Promise<boolean> = isPrimary,
  ): Promise<void> {
    const port = await freePort();
    checks = await Promise.all(behind.map((server) => startCheck(() => isUsed(server))));
    const ports = checks.map((check) => (check.address() as AddressInfo).port);
    const file = join(home.folder, 'haproxy.cfg');
    writeFileSync(file, readConfiguration(port, behind, ports));
    const path = [process.env.PATH, '/usr/sbin'].join(':');
    if (!path.split(':').some((part) => existsSync(join(part, 'haproxy')))) {
      throw new Error('npm run test:failover needs haproxy: apt-get install haproxy');
    }
    proxy = spawn('haproxy', ['-db', '-f', file], { env: { PATH: path }, stdio: 'ignore' });
    recordProcess(proxy);
    service = await home.start({ DATABASE_URL: `postgres://postgres@127.0.0.1:${port}/postgres` });
    await service.untilReady();
  }

  it('loses nothing that was acknowledged, and stores each creation once, when the primary is killed and its standby promoted', async () => {
    const [primary, standby] = await startPair();
    await start([primary, standby]);
    const instances = [await service.url()];
    const clients = new PersistentClients(instances, CLIENTS);
    // The ids of round 1 are greater than those of the clients.
    const writers = new Writers(instances, CLIENTS, 1);
    await until(() => clients.successes > 500 && writers.those('acknowledged').length > 500);

    await primary.stop('SIGKILL');
    await until(async () => (await service.statusOf('/health/ready')) === 503);
    await until(() => writers.those('refused').length > 0);
    await standby.execute('SELECT pg_promote()');
    const [promoted, before] = [Date.now(), clients.successes];
    await until(() => writers.hasSucceededSince(promoted) && clients.successes > before + CLIENTS);
    await Promise.all([clients.stop(), writers.stop()]);

    const stored = Map.groupBy(await standby.plants(), ({ id }) => id < 1e9);
    expect(clients.unexpected).toEqual([]);
    expect(clients.differencesFrom(stored.get(true) ?? [])).toEqual([]);
    expect(brokenPromises(writers.creations, stored.get(false) ?? [])).toEqual({
      lost: [],
      refusedButStored: [],
      acknowledgedTwice: [],
    });
  });

  it.each([
    ['a foreign store', 'expected was the store', startForeign],
    ['an empty server', 'it has no table plants', startEmpty],
    ['a standby', 'the server is a standby', startStandby],
  ])('never uses %s that the proxy leads to', async (_what, reason, startOther) => {
    const own = await PostgresServer.start();
    servers.push(own);
    const other = await startOther();
    let used = own;
    await start([own, other], (server) => server === used);
    const before = await contentOf(other);

    used = other;
    // The log of a refused creation has its cause too.
    const count = () =>
      service.lines.filter(
        ({ context, msg }) => context === 'PlantStore' && String(msg).includes(reason),
      ).length;
    await until(() => count() > 0);
    const url = new URL('/plants', await service.url());
    const answers = new Set<unknown>();
    for (let id = 1; id < 100; id++) {
      answers.add(await create(url, id, 'Fern'));
      answers.add(await service.statusOf('/health/ready'));
      await setTimeout(20);
    }

    expect([...answers]).toEqual([50300, 503]);
    expect(count()).toBe(1);
    expect(await contentOf(other)).toEqual(before);
    used = own;
    await until(async () => (await create(url, 100, 'Fern')) === 0);
    expect(await own.plants()).toEqual([{ id: 100n, name: 'Fern' }]);
  });

  async function contentOf(server: PostgresServer): Promise<unknown> {
    const tables = await server.execute(
      "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1",
    );
    return [tables, tables.length > 0 && (await server.plants())];
  }

  async function startEmpty(): Promise<PostgresServer> {
    const server = await PostgresServer.start();
    servers.push(server);
    return server;
  }

  async function startForeign(): Promise<PostgresServer> {
    const server = await startEmpty();
    await (await PostgresPlantsRepository.open(server.url())).onApplicationShutdown();
    return server;
  }

  async function startStandby(): Promise<PostgresServer> {
    const [primary, standby] = await startPair();
    await (await PostgresPlantsRepository.open(primary.url())).onApplicationShutdown();
    return standby;
  }
});

/** The configuration of the page, with the ports of this test. */
function readConfiguration(port: number, servers: readonly PostgresServer[], checks: number[]) {
  const [, block = ''] = /```haproxy\n([^]*?)```/.exec(readFileSync(PAGE, 'utf8')) ?? [];
  return servers.reduce(
    (text, server, at) =>
      text.replace(
        `db${at + 1}.example.org:5432 check port 8008`,
        `127.0.0.1:${server.port} check port ${checks[at]}`,
      ),
    block.replace('127.0.0.1:5432', `127.0.0.1:${port}`),
  );
}

/** Answers as Patroni's health check does: 200 where the condition holds. */
async function startCheck(condition: () => boolean | Promise<boolean>): Promise<Server> {
  const check = createServer((request, response) => {
    void Promise.resolve(condition())
      .catch(() => false)
      .then((isPrimary) => {
        response.writeHead(isPrimary && request.url === '/primary' ? 200 : 503).end();
      });
  });
  await once(check.listen(0, '127.0.0.1'), 'listening');
  return check;
}

async function isPrimary(server: PostgresServer): Promise<boolean> {
  const [row] = await server.execute('SELECT pg_is_in_recovery() AS is_standby');
  return row?.is_standby === false;
}
