/** Tests the documented proxy configurations. It needs nginx and haproxy of Debian. */
import { once } from 'node:events';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { PlantStoreClient } from '../../src/client/index.mjs';
import { errorNumbers } from '../support/error-bodies';
import { TOKEN } from '../support/application';
import { findFreePort } from '../support/free-port';
import { listen } from '../support/listen';
import { createRequest, expectOutcomesMatch, Load } from '../support/load';
import { PostgresServer } from '../support/postgres';
import { type ServiceProcess, useServiceHome } from '../support/service-process';
import { TestProcess } from '../support/test-process';
import { until } from '../support/until';

const DOCS = join(__dirname, '../../docs');
const GET = 'GET / HTTP/1.1\r\nHost: x';

const home = useServiceHome();
let proxy: TestProcess | undefined;
let ports: { proxy: number; a: number; b: number };
beforeEach(async () => {
  chmodSync(home.folder, 0o755);
  ports = { proxy: await findFreePort(), a: await findFreePort(), b: await findFreePort() };
});
afterEach(() => proxy?.end());

describe.each([
  ['nginx', startNginx],
  ['HAProxy', startHaproxy],
])('behind %s', (_name, startProxy) => {
  it('no create request fails while two instances with PostgreSQL restart in turn', async () => {
    const postgres = await PostgresServer.start();
    const start = async (port: number): Promise<ServiceProcess> => {
      const settings = { PORT: String(port), DATABASE_URL: postgres.url(), SHUTDOWN_GRACE: '3s' };
      const instance = await home.start(settings);
      await instance.waitUntilReady();
      return instance;
    };
    const instances = [await start(ports.a), await start(ports.b)];
    await startProxy();
    let id = 0;
    const load = new Load({
      urls: [new URL(`http://127.0.0.1:${ports.proxy}`)],
      connections: 16,
      next: () => createRequest(++id),
      pauseMs: 100,
      shouldReconnect: true,
    });
    await setTimeout(1000);
    for (const [index, port] of [ports.a, ports.b].entries()) {
      await instances[index]?.end();
      instances[index] = await start(port);
      await setTimeout(2000);
    }
    await load.stop();
    const stored = await postgres.plants();
    await Promise.all(instances.map((instance) => instance.end()));
    await postgres.remove();

    expect(Object.keys(load.counts)).toEqual(['200']);
    expect(stored).toHaveLength(load.creations.length);
  });

  it('requests get an Error body when no instance is reachable, also with headers of nearly 16 KiB', async () => {
    await startProxy();

    for (const length of [1, 15_900]) {
      const request = `${GET}\r\nConnection: close\r\nX-Long: ${'x'.repeat(length)}`;
      await expectError(errorNumbers.unavailable, request);
    }
  });

  it.each([65_537, 200_000, 2_000_000])(
    'a body of %d bytes gets 400 from the service, and never 502 or 504',
    async (size) => {
      const service = await home.start({ PORT: String(ports.a) });
      await service.waitUntilReady();
      await startProxy();
      const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
      const url = `http://127.0.0.1:${ports.proxy}/plants`;
      const results: unknown[] = [];

      for (let count = 0; count < 80; count++) {
        const response = await fetch(url, { method: 'POST', headers, body: 'x'.repeat(size) });
        results.push(((await response.json()) as { error: number }).error);
      }

      expect(new Set(results)).toEqual(new Set([errorNumbers.tooLarge]));
    },
  );
});

it.each([
  ['two Host headers', errorNumbers.malformedRequest, `${GET}\r\nHost: y`],
  ['an unknown version', errorNumbers.malformedRequest, 'GET / HTTP/3.0\r\nHost: x'],
  ['an unknown coding', errorNumbers.malformedRequest, `${GET}\r\nTransfer-Encoding: gzip`],
  ['TRACE', errorNumbers.methodNotAllowed, GET.replace('GET', 'TRACE')],
  ['an internal path', errorNumbers.notFound, GET.replace('/', '/once')],
  ['a long path', errorNumbers.headersTooLarge, GET.replace('/', `/${'x'.repeat(20_000)}`)],
  ['a long header', errorNumbers.headersTooLarge, `${GET}\r\nX: ${'x'.repeat(20_000)}`],
])('nginx responds to %s with an Error body', async (_name, error, request) => {
  await startNginx();

  await expectError(error, `${request}\r\nConnection: close`);
});

it('nginx passes a request of HTTP/1.0 without a Host header to the service', async () => {
  await home.start({ PORT: String(ports.a) });
  await startNginx();

  expect(await send('GET /health/live HTTP/1.0')).toMatch(/^HTTP\/1.1 200 /);
});

it('behind HAProxy, the promotion of a standby after the primary was killed loses no acknowledged plant and stores each plant once', async () => {
  const primary = await PostgresServer.create({ synchronous_standby_names: '*' });
  const standby = await primary.startStandby();
  const checks = [primary, standby].map(createHealthCheck);
  const [one, other] = await Promise.all(checks.map(listen));
  const [, block = ''] =
    /```haproxy\n([^]*?)```/.exec(readFileSync(join(DOCS, 'postgresql.md'), 'utf8')) ?? [];
  await startHaproxy(
    block
      .replace('127.0.0.1:5432', `127.0.0.1:${ports.proxy}`)
      .replace(
        'db1.example.org:5432 check port 8008',
        `127.0.0.1:${primary.port} check port ${one?.port}`,
      )
      .replace(
        'db2.example.org:5432 check port 8008',
        `127.0.0.1:${standby.port} check port ${other?.port}`,
      ),
  );
  const DATABASE_URL = `postgres://postgres@127.0.0.1:${ports.proxy}/postgres`;
  const service = await home.start({ DATABASE_URL });
  await service.waitUntilReady();
  const url = await service.url();
  const load = Load.startCompeting([url], 32);
  const client = new PlantStoreClient({ url, token: TOKEN });
  let id = 1e12;
  let isOver = false;
  const created: number[] = [];
  const callers = Array.from({ length: 32 }, async () => {
    while (!isOver) {
      const own = id++;
      await client.create({ id: own, name: 'Fern' });
      created.push(own);
    }
  });
  await until(() => created.length > 500 && load.withOutcome(200).length > 500);

  await primary.stop('SIGKILL');
  await until(async () => (await service.getStatus('/health/ready')) === 503);
  await until(() => load.withOutcome(errorNumbers.unavailable).length > 0);
  await standby.execute('SELECT pg_promote()');
  const promoted = Date.now();
  const before = created.length;
  await until(() => load.hasSucceededSince(promoted) && created.length > before + 32);
  isOver = true;
  await Promise.all([load.stop(), ...callers]);

  const stored = await standby.plants();
  expectOutcomesMatch(load.creations, stored);
  expect(stored.map((plant) => Number(plant.id)).filter((each) => each >= 1e12)).toEqual(
    created.toSorted((a, b) => a - b),
  );
  for (const check of checks) check.close();
  await Promise.all([primary.remove(), standby.remove()]);
});

async function startNginx(): Promise<void> {
  writeFileSync(join(home.folder, 'plants.conf'), readConfiguration('nginx.conf'));
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const main = [
    'daemon off; worker_processes 1; error_log stderr;',
    `pid ${home.folder}/nginx.pid;`,
    'worker_rlimit_nofile 16384; events { worker_connections 16384; }',
    'http { access_log off;',
    ...temporary.map((kind) => `${kind}_temp_path ${home.folder}/${kind};`),
    `include ${home.folder}/plants.conf; }`,
  ];
  writeFileSync(join(home.folder, 'nginx.conf'), main.join('\n'));
  await startProxyProcess('nginx', '-p', home.folder, '-c', join(home.folder, 'nginx.conf'));
}

async function startHaproxy(configuration = readConfiguration('haproxy.cfg')): Promise<void> {
  writeFileSync(join(home.folder, 'haproxy.cfg'), configuration);
  await startProxyProcess('haproxy', '-db', '-f', join(home.folder, 'haproxy.cfg'));
}

/** Reads a documented configuration, and replaces its ports. */
function readConfiguration(name: string): string {
  return readFileSync(join(DOCS, 'deploy', name), 'utf8')
    .replace('127.0.0.1:8080', `127.0.0.1:${ports.proxy}`)
    .replace('127.0.0.1:3001', `127.0.0.1:${ports.a}`)
    .replace('127.0.0.1:3002', `127.0.0.1:${ports.b}`);
}

async function startProxyProcess(program: string, ...args: string[]): Promise<void> {
  const path = [process.env.PATH, '/usr/sbin'].join(':');
  if (!path.split(':').some((part) => existsSync(join(part, program)))) {
    throw new Error(`npm run test:deploy needs ${program}: apt-get install ${program}`);
  }
  const started = new TestProcess([program, ...args], { env: { PATH: path } });
  proxy = started;
  await until(async () => {
    if (started.child.exitCode !== null) throw new Error(started.stderr);
    const socket = connect(ports.proxy);
    const connected = once(socket, 'connect').then(Boolean, () => false);
    return connected.finally(() => socket.destroy());
  });
}

/** Sends the lines of a request. Returns the response when the proxy has closed the connection. */
async function send(lines: string): Promise<string> {
  const socket = connect(ports.proxy);
  socket.write(`${lines}\r\n\r\n`, 'latin1');
  return text(socket);
}

/** Sends a request, and expects a response with the Error body. */
async function expectError(error: number, lines: string): Promise<void> {
  const response = await send(lines);
  expect(response.startsWith(`HTTP/1.1 ${String(error).slice(0, 3)} `)).toBe(true);
  expect(response).toMatch(/\r\ncontent-type: application\/json\r\n/i);
  expect(response).toContain(`{"error":${error},`);
}

/** Creates a server that responds like Patroni's health check: 200 for the primary. */
function createHealthCheck(server: PostgresServer): Server {
  return createServer((request, response) => {
    void server
      .execute('SELECT WHERE NOT pg_is_in_recovery()')
      .catch(() => [])
      .then(({ length }) => {
        response.writeHead(length === 1 && request.url === '/primary' ? 200 : 503).end();
      });
  });
}
