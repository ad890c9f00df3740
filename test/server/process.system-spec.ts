/** Starts and stops the service as a process. Some tests need Linux, user namespaces or curl. */
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { constants } from 'node:os';
import { dirname } from 'node:path';
import { TOKEN } from '../support/application';
import { errorBodies } from '../support/error-bodies';
import { listen } from '../support/listen';
import { createRequest } from '../support/load';
import { readMetric } from '../support/metrics';
import { plantStore } from '../support/plant-store';
import { describeOnLinux, describeWith, shell } from '../support/run';
import { useServiceHome } from '../support/service-process';
import { lockDatabase } from '../support/sqlite';
import { until } from '../support/until';
import { exchange, openConnection, readResponses } from '../support/wire';

/** The headers and the body of a create request that waits for 100 Continue. */
const [HEADERS = '', BODY = ''] = createRequest(1)
  .text.replace('Host: x', 'Host: x\r\nExpect: 100-continue')
  .split(/(?<=\r\n\r\n)/);

describe('the service as a process', () => {
  const home = useServiceHome();

  /** Returns the standard error of a service that cannot start. */
  async function failure(environment: NodeJS.ProcessEnv): Promise<string> {
    const service = home.spawn(environment);
    expect(await service.ended).toEqual({ code: 1, signal: null });
    expect(service.lines.filter(({ level }) => Number(level) >= 50)).toEqual([]);
    return service.stderr;
  }

  describeOnLinux(() => {
    describeWith('curl', () => {
      it.each([
        // All of 127.0.0.0/8 is the loopback interface.
        ['127.0.0.2', '127.0.0.2'],
        ['0.0.0.0', '127.0.0.1'],
      ])(
        'listens only on HOST=%s, and prints a curl command without AUTH_TOKENS',
        async (HOST, to) => {
          const service = home.spawn({ HOST });
          const [line] = await service.waitForOutput(/^curl .*$/m, 'stderr');
          const { port } = await service.url();

          const { stdout } = await shell(line);

          // `lines` parses each line of standard output as JSON.
          const messages = service.lines.map(({ msg }) => msg);
          expect(messages).toContain(`Listening on http://${HOST}:${port}`);
          expect(messages).toContain(`Swagger UI is at http://${to}:${port}/docs`);
          expect(line).toContain(` http://${to}:${port}/plants `);
          // The command uses a new id each time it is pasted.
          expect(line).toContain(`"id":'$(date +%s)'`);
          expect(stdout).toMatch(/^HTTP\/1.1 200 OK[^]*{"name":"Fern"}$/);
          expect(home.plants()).toHaveLength(1);
          expect(await isListening(`http://127.0.0.1:${port}`)).toBe(HOST !== '127.0.0.2');
        },
      );
    });
  });

  it.each(['PORT', 'HEALTH_PORT'])(
    'exits with one error message when %s is in use',
    async (name) => {
      const other = createServer();
      const { port } = await listen(other);

      const message = `HOST and ${name} cannot be used: listen EADDRINUSE: `;
      expect(await failure({ [name]: port })).toContain(message);
      other.close();
    },
  );

  it('on SIGTERM responds to accepted requests, closes idle connections, and exits with code 0 and a single database file', async () => {
    // These timeouts are longer than the test may take, so they do not close connections.
    const times = { HEADERS_TIMEOUT: '10m', REQUEST_TIMEOUT: '10m', SHUTDOWN_TIMEOUT: '20m' };
    const service = await home.start(times);
    const url = await service.url();
    const socket = await beginCreation(url);
    const idle = openConnection(url);
    const used = openConnection(url);
    await once(idle, 'connect');
    used.write('GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(used, 'data');

    service.kill('SIGTERM');
    const responses = readResponses(socket);
    await until(async () => !(await isListening(url)));
    socket.write(BODY);

    expect(await responses).toMatchObject([
      { status: 100 },
      { status: 200, headers: { connection: 'close' }, body: { name: 'Fern' } },
    ]);
    expect(await service.ended).toEqual({ code: 0, signal: null });
    expect(service.stdout).toContain('"Received SIGTERM, shutting down."');
    expect(service.stdout).toContain('"Stopped."');
    expect(readdirSync(dirname(home.file))).toEqual(['plants.db']);
    expect(home.plants()).toEqual([{ id: 1n, name: 'Fern' }]);
    idle.destroy();
    used.destroy();
  });

  it('keeps serving during SHUTDOWN_GRACE, live but not ready, and kills itself on a second signal', async () => {
    const service = await home.start({ SHUTDOWN_GRACE: '5m', SHUTDOWN_TIMEOUT: '6m' });

    service.kill('SIGTERM');
    await until(async () => (await service.getStatus('/health/ready')) === 503);
    const ready = await fetch(new URL('/health/ready', await service.url()));
    expect(await ready.json()).toEqual(errorBodies.unavailable);
    expect(ready.headers.get('retry-after')).toBe('1');
    expect(await service.getStatus('/health/live')).toBe(200);
    expect((await service.post('{"id":1,"name":"Fern"}')).status).toBe(200);
    service.kill('SIGINT');

    expect(await service.ended).toEqual({ code: null, signal: 'SIGKILL' });
    // The log is complete.
    expect(service.stdout).toMatch(/"Received SIGTERM, shutting down\."}\n$/);
  });

  it('kills itself with an error message when closing takes longer than SHUTDOWN_TIMEOUT', async () => {
    const service = await home.start({ SHUTDOWN_TIMEOUT: '300ms' });
    const lock = lockDatabase(home.file);
    const socket = await beginCreation(await service.url());
    // The request has begun, so it reaches the store even if the signal arrives first.
    socket.write(BODY);
    service.kill('SIGTERM');

    expect(await service.ended).toEqual({ code: null, signal: 'SIGKILL' });
    expect(service.stderr).toBe(
      'The service did not shut down within 300 ms (SHUTDOWN_TIMEOUT).\n',
    );
    lock.close();
    // The response was not read, so the connection stays open.
    socket.destroy();
  });

  it('ends by SIGTERM while it waits for a locked SQLite file', async () => {
    const first = await home.start();
    await first.end();
    const lock = lockDatabase(home.file);
    const service = home.spawn({ AUTH_TOKENS: TOKEN });
    await service.waitForOutput(/Storing plants in/);

    expect(await service.end('SIGTERM')).toEqual({ code: null, signal: 'SIGTERM' });
    expect(service.stdout).not.toContain('Listening');
    lock.close();
  });

  describeOnLinux(() => {
    it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
      'exits with code 0 on %s before it has loaded, also as the first process of a container',
      async (signal) => {
        const service = home.spawn({ AUTH_TOKENS: TOKEN }, ['unshare', '-r', '--pid', '--fork']);
        const pid = await findChild(service.pid);
        // Node.js has handlers for SIGTERM and SIGINT from the start, so wait for ours: SIGHUP is its last.
        const bit = 1n << BigInt(constants.signals.SIGHUP - 1);
        await until(() => (readCaughtSignals(pid) & bit) !== 0n);
        process.kill(pid, signal);

        expect(await service.ended).toEqual({ code: 0, signal: null });
        expect(service.stdout).not.toContain('Listening');
      },
    );
  });

  it('lets 1,000 new connections wait in the kernel while the event loop is blocked', async () => {
    const service = await home.start();
    const url = await service.url();
    service.kill('SIGSTOP');

    const sockets = Array.from({ length: 1000 }, () => openConnection(url));
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));

    service.kill('SIGCONT');
    sockets.forEach((socket) => socket.destroy());
    expect(await service.end()).toEqual({ code: 0, signal: null });
  });

  it('closes and counts connections beyond MAX_CONNECTIONS, and still responds on HEALTH_PORT', async () => {
    const service = await home.start({ HEALTH_PORT: '0', MAX_CONNECTIONS: '10' });
    const url = await service.url();
    const [, health = ''] = await service.waitForOutput(/Health and metrics also on ([^"]+)/);

    const sockets = Array.from({ length: 50 }, () => openConnection(url).resume());
    let dropped = 0;
    for (const socket of sockets) socket.on('close', () => dropped++);
    await until(() => dropped === 40);

    await service.waitForOutput(/Closed a new connection: the limit of 10 open connections/);
    expect((await fetch(new URL('/health/ready', health))).status).toBe(200);
    expect(await readMetric(new URL(health), 'http_dropped_connections_total')).toBe(40);
    const ports = { PORT: url.port, HEALTH_PORT: new URL(health).port };
    expect(await plantStore(['health', '--ready'], ports)).toMatchObject({ code: 0 });
    sockets.forEach((socket) => socket.destroy());
    await until(() => service.post('{"id":1,"name":"Fern"}').then(Boolean, () => false));
    const idle = openConnection(new URL(health));
    await once(idle, 'connect');
    expect(await service.end()).toEqual({ code: 0, signal: null });
    idle.destroy();
  });

  it('serves only health and metrics on HEALTH_PORT, and returns the Error body', async () => {
    const service = await home.start({ HEALTH_PORT: '0' });
    const [, url = ''] = await service.waitForOutput(/also on (http:[^"\s]+)/);
    const send = async (request: string) =>
      (await exchange(new URL(url), `${request}\r\nConnection: close\r\n\r\n`))[0];

    const { expectationFailed, malformedRequest, missingHost, notFound } = errorBodies;
    expect(await send('garbage')).toMatchObject({ body: malformedRequest });
    expect(await send('GET /health/live HTTP/1.1')).toMatchObject({ body: missingHost });
    for (const [line, expected] of [
      ['POST /plants', { body: notFound }],
      ['GET /health/ready?x', { status: 200 }],
      ['GET /metrics?name%5B%5D=up', { status: 401 }],
    ] as const) {
      expect(await send(`${line} HTTP/1.1\r\nHost: x`)).toMatchObject(expected);
    }
    const alive = 'GET /health/live HTTP/1.1\r\nHost: x';
    expect(await send(`${alive}\r\nExpect: x`)).toMatchObject({ body: expectationFailed });
    const responses = await exchange(new URL(url), `${alive}\r\n\r\n`.repeat(65));
    expect(responses).toMatchObject([{ status: 200, headers: { connection: 'close' } }]);
  });

  it.each([
    ['idle', '', 32],
    ['in half of a request', 'GET /metrics HTTP/1.1\r\n', 32],
    // Each response ends its connection.
    ['of scrapers', 'GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n', 0],
  ])(
    'responds to probes on HEALTH_PORT while 40 connections are %s',
    async (_state, sent, minDropped) => {
      const service = await home.start({ HEALTH_PORT: '0' });
      const [, health = ''] = await service.waitForOutput(/also on (http:[^"\s]+)/);
      const url = new URL(health);

      const sockets = Array.from({ length: 40 }, () => openConnection(url));
      for (const socket of sockets) socket.on('error', () => undefined).write(sent);
      await Promise.all(sockets.map((socket) => once(socket, 'connect')));

      const { PORT, HEALTH_PORT } = { PORT: (await service.url()).port, HEALTH_PORT: url.port };
      expect(await plantStore(['health', '--ready'], { PORT, HEALTH_PORT })).toMatchObject({
        code: 0,
      });
      const dropped = await readMetric(url, 'http_dropped_connections_total');
      expect(dropped).toBeGreaterThanOrEqual(minDropped);
      const warning = 'Closed the oldest connection to HEALTH_PORT: the limit of 8';
      expect(service.stdout.includes(warning)).toBe(dropped > 0);
      for (const socket of sockets) socket.destroy();
    },
  );

  it.each([
    [{ AUTH_TOKENS_FILE: 'missing' }, /^AUTH_TOKENS_FILE .*missing.*\n$/],
    [{ AUTH_TOKENS: TOKEN, DATABASE_URL: 'sqlite:/dev/null/plants.db' }, /^DATABASE_URL .*\n$/],
    [{ AUTH_TOKENS: TOKEN, TLS_CERT: 'b', TLS_KEY: 'c' }, /^TLS_CERT .*\n$/],
    [{ HOST: 'plants.invalid' }, /^HOST and PORT cannot be used: .*plants\.invalid\.\n$/],
  ])(
    'exits with one error message when it cannot use a file or an address: %j',
    async (environment, message) => {
      expect(await failure(environment)).toMatch(message);
    },
  );
});

const isListening = (url: URL | string) => fetch(url).then(Boolean, () => false);

/** Waits until a process has a child process. Returns the process id of the child. */
async function findChild(pid: number): Promise<number> {
  const read = () => Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8'));
  await until(() => read() > 0);
  return read();
}

/** Returns the signals that a process handles, proc_pid_status(5): one bit each. */
function readCaughtSignals(pid: number): bigint {
  const [, mask] = /^SigCgt:\s*(\w+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return BigInt(`0x${mask}`);
}

/** Sends the headers of a create request. Resolves when the service requests the body: the request has begun. */
async function beginCreation(url: URL): Promise<Socket> {
  const socket = openConnection(url);
  socket.write(HEADERS);
  await once(socket, 'readable');
  // The service may disconnect.
  socket.on('error', () => undefined);
  return socket;
}
