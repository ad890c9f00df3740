import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { TOKEN } from '../support/application';
import { freePort } from '../support/free-port';
import { PostgresServer } from '../support/postgres';
import { recordProcess } from '../support/run-folder';
import { type ServiceProcess, useServiceHome } from '../support/service-process';
import { until } from '../support/until';

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

let proxy: ChildProcess | undefined;
afterEach(async () => {
  if (proxy?.exitCode === null) {
    proxy.kill('SIGTERM');
    await once(proxy, 'close');
  }
});
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
  describe('two instances with PostgreSQL', () => {
    let postgres: PostgresServer;
    beforeEach(async () => {
      postgres = await PostgresServer.start();
    });
    afterEach(() => postgres.remove());

    async function start(port: number): Promise<ServiceProcess> {
      const settings = { PORT: String(port), DATABASE_URL: postgres.url(), SHUTDOWN_GRACE: '3s' };
      const instance = await home.start(settings);
      await instance.untilReady();
      return instance;
    }

    it('are restarted one after the other without a failed creation', async () => {
      const instances = [await start(ports.a), await start(ports.b)];
      await startProxy();
      const load = startLoad();
      await setTimeout(1000);
      for (const [index, port] of [ports.a, ports.b].entries()) {
        await instances[index]?.end();
        instances[index] = await start(port);
        await setTimeout(2000);
      }
      const outcomes = await load.stop();
      await Promise.all(instances.map((instance) => instance.end()));

      expect(outcomes.filter(({ status }) => status !== 200)).toEqual([]);
      expect(outcomes.length).toBeGreaterThan(RATE * 5);
      expect(await postgres.plants()).toHaveLength(outcomes.length);
    });
  });

  describe('one instance with SQLite', () => {
    it('is restarted: meanwhile creations are refused, or their outcome is unknown', async () => {
      const settings = { PORT: String(ports.a) };
      let instance = await home.start(settings);
      await startProxy();
      await untilProxied();
      const load = startLoad();
      await setTimeout(1000);

      await instance.end();
      await setTimeout(500);
      instance = await home.start(settings);
      await untilProxied();
      await setTimeout(1000);
      const outcomes = await load.stop();
      await instance.end();

      const failed = outcomes.filter(({ status }) => status !== 200);
      expect(failed.filter(({ body }) => !/"error":50[34]00/.test(body))).toEqual([]);
      expect(failed.filter(({ body }) => body.includes('"error":50300'))).not.toEqual([]);
      expect(outcomes.at(-1)?.status).toBe(200);
    });
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
  let output = '';
  proxy = spawn(program, args, { env: { PATH: path } });
  recordProcess(proxy);
  proxy.stderr?.on('data', (chunk) => (output += String(chunk)));
  const started = proxy;
  await until(async () => {
    if (started.exitCode !== null) throw new Error(output);
    const socket = connect(ports.proxy);
    const connected = once(socket, 'connect').then(
      () => true,
      () => false,
    );
    return connected.finally(() => socket.destroy());
  });
}

/** Waits until the proxy has found an instance that is ready. */
function untilProxied(): Promise<void> {
  const url = `http://127.0.0.1:${ports.proxy}/health/ready`;
  return until(() =>
    fetch(url).then(
      ({ status }) => status === 200,
      () => false,
    ),
  );
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
