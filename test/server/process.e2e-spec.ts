import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { OperatorError } from '../../src/plants/errors/operator.error';
import { listen } from '../../src/server/edge/listen';
import { readEnvironment } from '../../src/server/settings/environment';
import { TestApplication, TOKEN } from '../support/application';
import { errorBodies } from '../support/error-bodies';
import { listen as listenOn } from '../support/listen';
import { createRequest } from '../support/load';
import { readMetric } from '../support/metrics';
import { plantStore, WITHOUT_ROOT_ACCESS } from '../support/plant-store';
import { PostgresServer } from '../support/postgres';
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
  async function failure(environment: NodeJS.ProcessEnv, wrapper?: string[]): Promise<string> {
    const service = home.spawn(environment, wrapper);
    expect(await service.ended).toEqual({ code: 1, signal: null });
    expect(service.stdout).not.toMatch(/in use|successfully started/);
    return service.stderr;
  }

  describe('without AUTH_TOKENS', () => {
    describeOnLinux(() => {
      describeWith('curl', () => {
        it.each([
          // All of 127.0.0.0/8 is the loopback interface.
          ['127.0.0.2', '127.0.0.2'],
          ['0.0.0.0', '127.0.0.1'],
          ['[::]', '[::1]'],
        ])('listens only on HOST=%s, and prints a curl command', async (HOST, to) => {
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
        });
      });
    });

    it('logs that it is not ready while PostgreSQL rejects the password, and serves once PostgreSQL accepts it', async () => {
      const server = await PostgresServer.start();
      await server.addAccessRule('host all clerk 127.0.0.1/32 scram-sha-256');
      const DATABASE_URL = server.url().replace('//postgres@', '//clerk:secret@');
      const service = home.spawn({ DATABASE_URL, LOG_LEVEL: 'trace' });
      await service.waitForOutput(
        /"Not ready; create requests get 503: PostgreSQL at .*28P01.*\."/,
      );

      expect(service.stdout).not.toContain('secret');
      expect(service.stderr).toBe('');

      await server.execute("CREATE ROLE clerk LOGIN SUPERUSER PASSWORD 'secret'");
      const [, authorization = ''] = await service.waitForOutput(
        /^curl .*(Bearer \S+)'/m,
        'stderr',
      );
      expect((await service.post('{"id":1,"name":"Fern"}', { authorization })).status).toBe(200);
      await service.end();
      await server.remove();
    });
  });

  it('exits with one error message when PORT is in use', async () => {
    const other = createServer();
    const { port } = await listenOn(other);

    expect(await failure({ PORT: port })).toBe(
      `Cannot listen on 127.0.0.1:${port}: address already in use. Change PORT.\n`,
    );
    other.close();
  });

  describeOnLinux(() => {
    it('exits with the reason of the operating system when the database file cannot be opened', async () => {
      const file = join(home.folder, 'plants.db');
      writeFileSync(file, '', { mode: 0o000 });

      expect(await failure({ DATABASE_URL: `sqlite:${file}` }, WITHOUT_ROOT_ACCESS)).toMatch(
        /^sqlite names the file \S+, which cannot be used: EACCES: permission denied, .* \(DATABASE_URL\)\.\n$/,
      );
    });
  });

  it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    'on %s responds to accepted requests, closes idle connections, and exits with code 0 and a single database file',
    async (signal) => {
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

      service.kill(signal);
      const responses = readResponses(socket);
      await until(async () => !(await isListening(url)));
      socket.write(BODY);

      expect(await responses).toMatchObject([
        { status: 100 },
        { status: 200, headers: { connection: 'close' }, body: { name: 'Fern' } },
      ]);
      expect(await service.ended).toEqual({ code: 0, signal: null });
      expect(service.stdout).toContain(`"Received ${signal}, shutting down."`);
      expect(service.stdout).toContain('"Stopped."');
      expect(readdirSync(dirname(home.file))).toEqual(['plants.db']);
      expect(home.plants()).toEqual([{ id: 1n, name: 'Fern' }]);
      idle.destroy();
      used.destroy();
    },
  );

  it('keeps serving during SHUTDOWN_GRACE, live but not ready, and exits immediately on a second signal', async () => {
    const service = await home.start({ SHUTDOWN_GRACE: '5m', SHUTDOWN_TIMEOUT: '6m' });

    service.kill('SIGTERM');
    await until(async () => (await service.getStatus('/health/ready')) === 503);
    const ready = await fetch(new URL('/health/ready', await service.url()));
    expect(await ready.json()).toEqual(errorBodies.unavailable);
    expect(ready.headers.get('retry-after')).toBe('1');
    expect(await service.getStatus('/health/live')).toBe(200);
    expect((await service.post('{"id":1,"name":"Fern"}')).status).toBe(200);
    service.kill('SIGINT');

    expect(await service.ended).toEqual({ code: 130, signal: null });
  });

  it('exits with code 1 and an error message when closing takes longer than SHUTDOWN_TIMEOUT', async () => {
    const service = await home.start({ SHUTDOWN_TIMEOUT: '300ms' });
    const lock = lockDatabase(home.file);
    const socket = await beginCreation(await service.url());
    // The request has begun, so it reaches the store even if the signal arrives first.
    socket.write(BODY);
    service.kill('SIGTERM');

    expect(await service.ended).toEqual({ code: 1, signal: null });
    expect(service.stderr).toBe(
      'The service did not shut down within 300 ms (SHUTDOWN_TIMEOUT).\n',
    );
    lock.close();
    // The response was not read, so the connection stays open.
    socket.destroy();
  });

  it('exits with code 0 when it gets a signal while it waits for a locked SQLite file', async () => {
    const first = await home.start();
    await first.end();
    const lock = lockDatabase(home.file);
    const service = home.spawn({ AUTH_TOKENS: TOKEN });
    await service.waitForOutput(/Storing plants in/);

    expect(await service.end('SIGTERM')).toEqual({ code: 0, signal: null });
    expect(service.stdout).not.toContain('Listening');
    lock.close();
  });

  it('exits with code 0 when it gets a signal while PostgreSQL does not respond', async () => {
    const silent = createServer();
    const { port } = await listenOn(silent);
    const connected = once(silent, 'connection') as Promise<[Socket]>;
    const DATABASE_URL = `postgres://127.0.0.1:${port}/plants`;
    const service = home.spawn({ AUTH_TOKENS: TOKEN, DATABASE_URL });
    const [socket] = await connected;

    expect(await service.end('SIGHUP')).toEqual({ code: 0, signal: null });
    socket.destroy();
    silent.close();
  });

  describeOnLinux(() => {
    it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
      'exits with code 0 on %s before it has loaded, also as the first process of a container',
      async (signal) => {
        const service = home.spawn({ AUTH_TOKENS: TOKEN }, ['unshare', '-r', '--pid', '--fork']);
        const pid = await findChild(service.pid);
        const bit = 1n << BigInt(constants.signals[signal] - 1);
        await until(() => (readCaughtSignals(pid) & bit) !== 0n);
        process.kill(pid, signal);

        expect(await service.ended).toEqual({ code: 0, signal: null });
        expect(service.stdout).toBe('');
      },
    );
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
    expect(service.stdout.split('Closed').length).toBeLessThan(20);
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

  it('validates headers on HEALTH_PORT, and returns the Error body', async () => {
    const service = await home.start({ HEALTH_PORT: '0' });
    const [, url = ''] = await service.waitForOutput(/also on (http:[^"\s]+)/);
    const send = (request: string) => exchange(new URL(url), request);
    const get = (fields: string) => send(`GET /health/live HTTP/1.1\r\n${fields}\r\n`);

    const { malformedRequest, missingHost, headersTooLarge, notFound } = errorBodies;
    expect(await send('garbage\r\n\r\n')).toMatchObject([{ body: malformedRequest }]);
    expect(await get('')).toMatchObject([{ body: missingHost }]);
    expect(await get(`Host: x\r\n${'a:\r\n'.repeat(1000)}`)).toMatchObject([
      { body: headersTooLarge },
    ]);
    const post = 'POST /plants HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
    expect(await send(post)).toMatchObject([{ body: notFound }]);
    for (const target of ['/health/live', '/health/ready?x', '/metrics?name%5B%5D=up']) {
      const head = `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
      expect((await send(head))[0]?.status).toBe(target.startsWith('/metrics') ? 401 : 200);
    }
  });
});

describe('listen', () => {
  let application: TestApplication | undefined;
  afterEach(() => application?.stop());

  /** Returns the error with which an application fails to listen. */
  async function failureOf(environment: NodeJS.ProcessEnv): Promise<unknown> {
    application = await TestApplication.start();
    const settings = readEnvironment({ AUTH_TOKENS: TOKEN, PORT: '0', ...environment });
    return listen(application.app, settings, fail).catch((error: unknown) => error);
  }

  it('names HEALTH_PORT when that port is in use', async () => {
    const other = createServer();
    const { port } = await listenOn(other);

    expect(await failureOf({ HEALTH_PORT: port })).toEqual(
      new OperatorError(
        `Cannot listen on 127.0.0.1:${port}: address already in use. Change HEALTH_PORT.`,
      ),
    );
    other.close();
  });

  it.each([
    ['192.0.2.1', /^Cannot listen on 192\.0\.2\.1:0: address not available\. Change HOST\.$/],
    ['2001:db8::', /^Cannot listen on \[2001:db8::\]:0: address not available\. Change HOST\.$/],
    ['plants.invalid', /^Cannot listen on plants\.invalid:0: [^:\n]+\. Change HOST\.$/],
  ])('names HOST when the address is %s', async (HOST, message) => {
    expect(await failureOf({ HOST })).toMatchObject({
      name: OperatorError.name,
      message: expect.stringMatching(message) as string,
    });
  });
});

const fail = (error: unknown): never => {
  throw error;
};

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
