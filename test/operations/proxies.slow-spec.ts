import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { TOKEN } from '../support/application';
import { printFigures } from '../support/figures';
import { makeFolder, removeFolder } from '../support/folder';
import { freePort } from '../support/free-port';
import { PostgresServer } from '../support/postgres';
import { recordProcess } from '../support/run-folder';
import { ServiceProcess } from '../support/service-process';

/**
 * Restarts instances behind the proxies of docs/deploy while creations come in. It needs Debian's
 * nginx and haproxy.
 *
 * @alone
 */

const DEPLOY = join(__dirname, '../../docs/deploy');
const RATE = 150;

interface Outcome {
  readonly status: number;
  readonly body: string;
}

let folder: string;
let ports: { proxy: number; a: number; b: number };
let proxy: ChildProcess | undefined;
let proxyOutput: string;
let nextId = 1;
beforeEach(async () => {
  folder = makeFolder();
  chmodSync(folder, 0o755);
  ports = { proxy: await freePort(), a: await freePort(), b: await freePort() };
});
afterEach(async () => {
  if (proxy?.exitCode === null) {
    proxy.kill('SIGTERM');
    await once(proxy, 'close');
  }
  removeFolder(folder);
});

describe.each([
  ['nginx', startNginx],
  ['HAProxy', startHaproxy],
])('behind %s', (name, startProxy) => {
  describe('two instances with PostgreSQL', () => {
    let postgres: PostgresServer;
    const instances = new Map<number, ServiceProcess>();
    beforeEach(async () => {
      postgres = await PostgresServer.start();
      await start(ports.a);
      await start(ports.b);
      await startProxy();
    }, 180_000);
    afterEach(async () => {
      await Promise.all([...instances.values()].map((instance) => stop(instance)));
      await postgres.remove();
    }, 60_000);

    it('are restarted one after the other without a failed creation', async () => {
      const load = startLoad();
      await setTimeout(1000);
      for (const port of [ports.a, ports.b]) {
        await stop(instances.get(port));
        await start(port);
        await setTimeout(2000);
      }
      const outcomes = await load.stop();

      const failed = countByAnswer(outcomes.filter(({ status }) => status !== 200));
      printFigures(`rolling restart behind ${name}`, {
        creations: outcomes.length,
        failed: JSON.stringify(failed),
      });
      expect(failed).toEqual({});
      expect(outcomes.length).toBeGreaterThan(RATE * 5);
      expect(await postgres.plants()).toHaveLength(outcomes.length);
    }, 180_000);

    async function start(port: number): Promise<void> {
      const settings = { PORT: String(port), DATABASE_URL: postgres.url(), SHUTDOWN_GRACE: '3s' };
      const instance = await ServiceProcess.start(folder, settings);
      instances.set(port, instance);
      await untilReady(port);
    }
  });

  describe('one instance with SQLite', () => {
    it('is restarted: meanwhile creations are refused, or their outcome is unknown', async () => {
      const settings = { PORT: String(ports.a) };
      let instance = await ServiceProcess.start(folder, settings);
      await startProxy();
      await untilReady(ports.proxy);
      const load = startLoad();
      await setTimeout(1000);

      await stop(instance);
      await setTimeout(500);
      instance = await ServiceProcess.start(folder, settings);
      await untilReady(ports.proxy);
      await setTimeout(1000);
      const outcomes = await load.stop();
      await stop(instance);

      const count = (error: number): number =>
        outcomes.filter(({ body }) => body.includes(`"error":${error}`)).length;
      const others = countByAnswer(
        outcomes.filter(({ status, body }) => status !== 200 && !/"error":50[34]00/.test(body)),
      );
      printFigures(`one instance with SQLite restarted behind ${name}`, {
        creations: outcomes.length,
        'refused (50300)': count(50300),
        'unknown (50400)': count(50400),
      });
      expect(count(50300)).toBeGreaterThan(0);
      expect(others).toEqual({});
      expect(outcomes.at(-1)?.status).toBe(200);
    }, 120_000);
  });

  it('answers with an Error body when no instance is there', async () => {
    await startProxy();

    expect(await sendRaw('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).toMatch(
      /^HTTP\/1.1 503 [^]*\r\ncontent-type: application\/json\r\n[^]*{"error":50300,/i,
    );
  }, 60_000);
});

it('nginx answers a malformed head with an Error body', async () => {
  await startNginx();

  expect(await sendRaw('GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n')).toMatch(
    /^HTTP\/1.1 400 [^]*\r\ncontent-type: application\/json\r\n[^]*{"error":40000,/i,
  );
}, 60_000);

/** Creations at a fixed pace, however long the answers take. */
function startLoad(): { stop(): Promise<Outcome[]> } {
  const agent = new Agent({ keepAlive: true });
  const pending: Promise<Outcome>[] = [];
  const startedAt = performance.now();
  const timer = setInterval(() => {
    const due = ((performance.now() - startedAt) / 1000) * RATE;
    while (pending.length < due) pending.push(create(agent));
  }, 5);
  return {
    async stop() {
      clearInterval(timer);
      const outcomes = await Promise.all(pending);
      agent.destroy();
      return outcomes;
    },
  };
}

function create(agent: Agent): Promise<Outcome> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
    const options = { port: ports.proxy, path: '/plants', method: 'POST', headers, agent };
    const sent = request(options, (answer) => {
      let body = '';
      answer.on('data', (chunk) => (body += String(chunk)));
      answer.once('end', () => {
        resolve({ status: answer.statusCode ?? NaN, body });
      });
    });
    sent.once('error', ({ message }) => {
      resolve({ status: NaN, body: message });
    });
    sent.end(`{"id":${nextId++},"name":"Fern"}`);
  });
}

/** How often each answer was given, or each error met instead of one. */
function countByAnswer(outcomes: readonly Outcome[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status, body } of outcomes) {
    const answer = `${status} ${body}`;
    counts[answer] = (counts[answer] ?? 0) + 1;
  }
  return counts;
}

async function startNginx(): Promise<void> {
  writeFileSync(join(folder, 'plants.conf'), readConfiguration('nginx.conf'));
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const main = [
    'daemon off; worker_processes 1; error_log stderr;',
    `pid ${folder}/nginx.pid;`,
    'worker_rlimit_nofile 16384; events { worker_connections 16384; }',
    'http { access_log off;',
    ...temporary.map((kind) => `${kind}_temp_path ${folder}/${kind};`),
    `include ${folder}/plants.conf; }`,
  ];
  writeFileSync(join(folder, 'nginx.conf'), main.join('\n'));
  await startProxyProcess('nginx', '-p', folder, '-c', join(folder, 'nginx.conf'));
}

async function startHaproxy(): Promise<void> {
  writeFileSync(join(folder, 'haproxy.cfg'), readConfiguration('haproxy.cfg'));
  await startProxyProcess('haproxy', '-db', '-f', join(folder, 'haproxy.cfg'));
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
  proxyOutput = '';
  proxy = spawn(program, args, { env: { PATH: path } });
  recordProcess(proxy);
  proxy.stderr?.on('data', (chunk) => (proxyOutput += String(chunk)));
  for (;;) {
    if (proxy.exitCode !== null) throw new Error(proxyOutput);
    const socket = connect(ports.proxy);
    const isThere = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (isThere) return;
    await setTimeout(50);
  }
}

async function stop(instance: ServiceProcess | undefined): Promise<void> {
  instance?.kill('SIGTERM');
  await instance?.ended;
}

async function untilReady(port: number): Promise<void> {
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${port}/health/ready`).catch(() => undefined);
    if (answer?.status === 200) return;
    await setTimeout(50);
  }
}

async function sendRaw(text: string): Promise<string> {
  const socket = connect(ports.proxy);
  socket.write(text);
  let received = '';
  socket.on('data', (chunk) => (received += String(chunk)));
  await once(socket, 'end');
  socket.destroy();
  return received;
}
