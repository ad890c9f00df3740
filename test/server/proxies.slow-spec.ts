import { once } from 'node:events';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { freePort } from '../support/free-port';
import { PostgresServer } from '../support/postgres';
import { type ServiceProcess, useServiceHome } from '../support/service-process';
import { TestProcess } from '../support/test-process';
import { until } from '../support/until';
import { create } from '../support/writers';

/**
 * Restarts instances behind the proxies of docs/deploy while creations come in. It needs Debian's
 * nginx and haproxy.
 *
 * @alone
 */

const DEPLOY = join(__dirname, '../../docs/deploy');
const RATE = 150;

let proxy: TestProcess | undefined;
afterEach(() => proxy?.end());
const home = useServiceHome();
let ports: { proxy: number; a: number; b: number };
let nextId = 1;
beforeEach(async () => {
  chmodSync(home.folder, 0o755);
  ports = { proxy: await freePort(), a: await freePort(), b: await freePort() };
});

describe.each([
  ['nginx', startNginx],
  ['HAProxy', startHaproxy],
])('behind %s', (_name, startProxy) => {
  it('two instances with PostgreSQL are restarted in turn without a failed creation', async () => {
    const postgres = await PostgresServer.start();
    const start = async (port: number): Promise<ServiceProcess> => {
      const settings = { PORT: String(port), DATABASE_URL: postgres.url(), SHUTDOWN_GRACE: '3s' };
      const instance = await home.start(settings);
      await instance.untilReady();
      return instance;
    };
    const instances = [await start(ports.a), await start(ports.b)];
    await startProxy();
    const load = startLoad();
    await setTimeout(1000);
    for (const [index, port] of [ports.a, ports.b].entries()) {
      await instances[index]?.end();
      instances[index] = await start(port);
      await setTimeout(2000);
    }
    const errors = await load.stop();
    const stored = await postgres.plants();
    await Promise.all(instances.map((instance) => instance.end()));
    await postgres.remove();

    expect(errors.filter((error) => error !== 0)).toEqual([]);
    expect(errors.length).toBeGreaterThan(RATE * 5);
    expect(stored).toHaveLength(errors.length);
  });

  it('while one instance with SQLite restarts, creations are refused or unknown', async () => {
    const settings = { PORT: String(ports.a) };
    const instance = await home.start(settings);
    await startProxy();
    await untilProxied();
    const load = startLoad();
    await setTimeout(1000);

    await instance.end();
    await setTimeout(500);
    await home.start(settings);
    await untilProxied();
    await setTimeout(1000);
    const errors = await load.stop();

    const others = errors.filter((error) => error !== 0 && error !== 50300 && error !== 50400);
    expect(others).toEqual([]);
    expect(errors).toContain(50300);
    expect(errors.at(-1)).toBe(0);
  });

  it('answers with an Error body when no instance is there', async () => {
    await startProxy();

    expect(await sendRaw('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).toMatch(
      /^HTTP\/1.1 503 [^]*\r\ncontent-type: application\/json\r\n[^]*{"error":50300,/i,
    );
  });
});

it('nginx answers a malformed head with an Error body', async () => {
  await startNginx();

  expect(await sendRaw('GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n')).toMatch(
    /^HTTP\/1.1 400 [^]*\r\ncontent-type: application\/json\r\n[^]*{"error":40000,/i,
  );
});

/** Creations at a fixed pace, however long the answers take; gives back the number of each error. */
function startLoad(): { stop(): Promise<(number | undefined)[]> } {
  const url = `http://127.0.0.1:${ports.proxy}/plants`;
  const pending: Promise<number | undefined>[] = [];
  const startedAt = performance.now();
  const timer = setInterval(() => {
    const due = ((performance.now() - startedAt) / 1000) * RATE;
    while (pending.length < due) pending.push(create(url, nextId++, 'Fern'));
  }, 5);
  return {
    stop() {
      clearInterval(timer);
      return Promise.all(pending);
    },
  };
}

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

async function startHaproxy(): Promise<void> {
  writeFileSync(join(home.folder, 'haproxy.cfg'), readConfiguration('haproxy.cfg'));
  await startProxyProcess('haproxy', '-db', '-f', join(home.folder, 'haproxy.cfg'));
}

/** A configuration as it is documented, but for the ports. */
function readConfiguration(name: string): string {
  return readFileSync(join(DEPLOY, name), 'utf8')
    .replace('127.0.0.1:8080', `127.0.0.1:${ports.proxy}`)
    .replace('127.0.0.1:3001', `127.0.0.1:${ports.a}`)
    .replace('127.0.0.1:3002', `127.0.0.1:${ports.b}`);
}

async function startProxyProcess(program: string, ...args: string[]): Promise<void> {
  const path = [process.env.PATH, '/usr/sbin'].join(':');
  if (!path.split(':').some((part) => existsSync(join(part, program)))) {
    throw new Error(`npm run test:deploy needs ${program}: apt-get install ${program}`);
  }
  const started = (proxy = new TestProcess([program, ...args], { env: { PATH: path } }));
  await until(async () => {
    if (started.child.exitCode !== null) throw new Error(started.stderr);
    const socket = connect(ports.proxy);
    const connected = once(socket, 'connect').then(Boolean, () => false);
    return connected.finally(() => socket.destroy());
  });
}

/** Waits until the proxy has found an instance that is ready. */
function untilProxied(): Promise<void> {
  const url = `http://127.0.0.1:${ports.proxy}/health/ready`;
  return until(async () => (await fetch(url).catch(() => undefined))?.ok === true);
}

function sendRaw(request: string): Promise<string> {
  const socket = connect(ports.proxy);
  socket.write(request);
  return text(socket);
}
