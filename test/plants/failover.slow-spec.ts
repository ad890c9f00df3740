import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { freePort } from '../support/free-port';
import { PostgresServer } from '../support/postgres';
import { recordProcess } from '../support/run-folder';
import { type ServiceProcess, useServiceHome } from '../support/service-process';
import { until } from '../support/until';
import { expectKept, Writers } from '../support/writers';

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

  /** Starts the proxy in front of the servers, and the service. */
  async function start(): Promise<void> {
    const port = await freePort();
    checks = await Promise.all(servers.map(startCheck));
    const ports = checks.map((check) => (check.address() as AddressInfo).port);
    const file = join(home.folder, 'haproxy.cfg');
    writeFileSync(file, readConfiguration(port, servers, ports));
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
    const primary = await PostgresServer.make({ synchronous_standby_names: '*' });
    const standby = await primary.startStandby();
    servers.push(primary, standby);
    await start();
    const instances = [await service.url()];
    const writers = new Writers(instances, CLIENTS, 1);
    // The ids of round 2 are greater than those of round 1.
    const clients = new Writers(instances, CLIENTS, 2, true);
    const successes = () => clients.those('acknowledged').length;
    await until(() => successes() > 500 && writers.those('acknowledged').length > 500);

    await primary.stop('SIGKILL');
    await until(async () => (await service.statusOf('/health/ready')) === 503);
    await until(() => writers.those('refused').length > 0);
    await standby.execute('SELECT pg_promote()');
    const [promoted, before] = [Date.now(), successes()];
    await until(() => writers.hasSucceededSince(promoted) && successes() > before + CLIENTS);
    await Promise.all([clients.stop(), writers.stop()]);

    const stored = await standby.plants();
    expectKept([...writers.creations, ...clients.creations], stored);
    expect(successes()).toBe(clients.creations.length);
    expect(stored.filter(({ id }) => id >= 2e9)).toHaveLength(successes());
  });
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

/** Answers as Patroni's health check does: 200 for the primary. */
async function startCheck(server: PostgresServer): Promise<Server> {
  const check = createServer((request, response) => {
    void isPrimary(server)
      .catch(() => false)
      .then((isUsed) => {
        response.writeHead(isUsed && request.url === '/primary' ? 200 : 503).end();
      });
  });
  await once(check.listen(0, '127.0.0.1'), 'listening');
  return check;
}

async function isPrimary(server: PostgresServer): Promise<boolean> {
  const [row] = await server.execute('SELECT pg_is_in_recovery() AS is_standby');
  return row?.is_standby === false;
}
