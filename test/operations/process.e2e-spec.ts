import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { TOKEN } from '../support/application';
import { makeFolder, removeFolder } from '../support/folder';
import { creation } from '../support/load';
import { readMetric } from '../support/metrics';
import { shell } from '../support/run';
import { ServiceProcess } from '../support/service-process';
import { lockDatabase, readPlants } from '../support/sqlite';
import { until } from '../support/until';
import { open, readAnswers } from '../support/wire';

/** A creation that waits to be asked for its body. */
const [HEAD = '', BODY = ''] = creation(1)
  .text.replace('Host: x', 'Host: x\r\nExpect: 100-continue')
  .split(/(?<=\r\n\r\n)/);

describe('the service as a process', () => {
  let folder: string;
  let service: ServiceProcess | undefined;
  beforeEach(() => {
    folder = makeFolder();
  });
  afterEach(async () => {
    service?.kill('SIGKILL');
    await service?.ended;
    service = undefined;
    removeFolder(folder);
  });

  it("logs under the names of Nest's classes, although it is bundled", async () => {
    service = await ServiceProcess.start(folder);

    expect(service.stdout).toContain('"context":"RouterExplorer"');
  });

  describe('without AUTH_TOKENS', () => {
    it('prints a curl line that creates a plant when pasted', async () => {
      service = new ServiceProcess(folder);
      const [line = ''] = await printed(service, /^curl .*$/m, 'stderr');

      const { stdout } = await shell(line);

      expect(stdout).toContain('HTTP/1.1 200 OK');
      expect(stdout).toContain('{"name":"Fern","tag":"shade"}');
      expect(readPlants(join(folder, 'data/plants.db'))).toHaveLength(1);
    });

    it('prints another id and another token at the next start', async () => {
      const lines = [];
      for (let start = 0; start < 2; start++) {
        service = new ServiceProcess(folder);
        lines.push((await printed(service, /Bearer (\S+)' .*"id":(\d+)/, 'stderr')).slice(1));
        service.kill('SIGTERM');
        await service.ended;
      }

      expect(lines[0]?.[0]).not.toBe(lines[1]?.[0]);
      expect(lines[0]?.[1]).not.toBe(lines[1]?.[1]);
    });

    it('keeps the standard output one JSON object a line', async () => {
      service = new ServiceProcess(folder);
      await printed(service, /^curl .*$/m, 'stderr');
      service.kill('SIGTERM');
      await service.ended;

      expect(messagesOf(service)).toContain(
        `Swagger UI is at ${(await service.url()).origin}/docs`,
      );
    });

    it('does not start in production', async () => {
      service = new ServiceProcess(folder, { NODE_ENV: 'production' });

      expect(await service.ended).toEqual({ code: 1, signal: null });
      expect(service.stderr).toBe(
        'AUTH_TOKENS, AUTH_TOKENS_FILE or AUTH_ISSUER must be set when NODE_ENV is production\n',
      );
      expect(existsSync(join(folder, 'data'))).toBe(false);
    });
  });

  it('never prints a configured token', async () => {
    service = await ServiceProcess.start(folder, { LOG_LEVEL: 'trace' });
    service.kill('SIGTERM');
    await service.ended;

    expect(service.stdout + service.stderr).not.toContain(TOKEN);
  });

  it('logs one line a request with ACCESS_LOG, without the query', async () => {
    service = await ServiceProcess.start(folder, { ACCESS_LOG: 'true', LOG_LEVEL: 'info' });
    const url = await service.url();
    await fetch(new URL('/plants?secret', url));
    service.kill('SIGTERM');
    await service.ended;

    const lines = service.stdout.split('\n').filter((line) => line.includes('"path"'));
    expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { method: 'GET', path: '/plants', status: 405 },
    ]);
    expect(service.stdout).not.toContain('secret');
  });

  it('names every bad variable and ends with 1', async () => {
    service = new ServiceProcess(folder, { PORT: 'x', DOCS: 'x' });

    expect(await service.ended).toEqual({ code: 1, signal: null });
    expect(service.stderr).toBe(
      'PORT must be a port from 0 to 65535\nDOCS must be true or false\n',
    );
  });

  it('ends with one sentence when the database cannot be used', async () => {
    writeFileSync(join(folder, 'file'), '');
    service = new ServiceProcess(folder, { DATABASE_URL: 'sqlite:file/plants.db' });

    expect(await service.ended).toEqual({ code: 1, signal: null });
    expect(service.stderr).toMatch(
      /^The database file \/.*\/file\/plants.db cannot be used: EEXIST: file already exists, .* \(DATABASE_URL\)\.\n$/,
    );
    expect(messagesOf(service).join()).not.toContain('cannot be used');
  });

  it('ends with one sentence when the directory of the database cannot be made', async () => {
    service = new ServiceProcess(folder, { DATABASE_URL: 'sqlite:/proc/plants/plants.db' });

    expect(await service.ended).toEqual({ code: 1, signal: null });
    expect(service.stderr).toMatch(
      /^The database file \/proc\/plants\/plants.db cannot be used: ENOENT: no such file or directory, mkdir '\/proc\/plants' \(DATABASE_URL\)\.\n$/,
    );
  });

  it('makes the directories of the database', async () => {
    service = await ServiceProcess.start(folder, { DATABASE_URL: 'sqlite:a/b/c/plants.db' });

    expect((await service.post('{"id":1,"name":"Fern"}')).status).toBe(200);
    expect(readPlants(join(folder, 'a/b/c/plants.db'))).toHaveLength(1);
  });

  it('warns in the log of a variable that is nearly one of its own', async () => {
    service = await ServiceProcess.start(folder, { DATABSE_URL: 'postgres://localhost/plants' });

    await printed(
      service,
      /"level":40.*DATABSE_URL is set but has no effect: did you mean DATABASE_URL\?"/,
    );
    expect(service.stdout).not.toContain('localhost/plants');
  });

  it('ends with one sentence when the port is taken', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as { port: number };
    service = new ServiceProcess(folder, { PORT: String(port) });

    expect(await service.ended).toEqual({ code: 1, signal: null });
    expect(service.stderr).toBe(
      `Cannot listen on 127.0.0.1:${port}: address already in use. Change PORT.\n`,
    );
    expect(messagesOf(service).join()).not.toContain('in use');
    other.close();
  });

  it.each([
    ['192.0.2.1', 'Cannot listen on 192.0.2.1:0: address not available. Change HOST.\n'],
    ['2001:db8::1', 'Cannot listen on [2001:db8::1]:0: address not available. Change HOST.\n'],
    [
      'plants.invalid',
      expect.stringMatching(/^Cannot listen on plants\.invalid:0: [^:\n]+\. Change HOST\.\n$/),
    ],
  ])('ends with one sentence when it cannot listen on %s', async (host, sentence) => {
    service = new ServiceProcess(folder, { HOST: host });

    expect(await service.ended).toEqual({ code: 1, signal: null });
    expect(service.stderr).toEqual(sentence);
  });

  it('says why the operating system refuses the database file', async () => {
    const file = join(folder, 'plants.db');
    writeFileSync(file, '', { mode: 0o000 });
    // Root may do anything unless it gives up the capability.
    const wrapper = process.getuid?.() === 0 ? ['setpriv', '--bounding-set', '-dac_override'] : [];
    service = new ServiceProcess(folder, { DATABASE_URL: `sqlite:${file}` }, wrapper);

    expect(await service.ended).toEqual({ code: 1, signal: null });
    expect(service.stderr).toMatch(
      /^The database file \S+ cannot be used: EACCES: permission denied, .* \(DATABASE_URL\)\.\n$/,
    );
  });

  it('listens where HOST says, and nowhere else', async () => {
    // All of 127.0.0.0/8 is the loopback interface.
    service = await ServiceProcess.start(folder, { HOST: '127.0.0.2' });
    const url = await service.url();

    expect((await fetch(new URL('/health/live', url))).status).toBe(200);
    url.hostname = '127.0.0.1';
    expect(await refusesConnections(url)).toBe(true);
  });

  it('ends with one sentence when Node.js is too old', async () => {
    const preload = join(folder, 'old.cjs');
    writeFileSync(
      preload,
      "Object.defineProperty(process.versions, 'node', { value: '24.14.1' });" +
        "Object.defineProperty(process, 'version', { value: 'v24.14.1' });",
    );
    service = new ServiceProcess(folder, { NODE_OPTIONS: `--require ${preload}` });

    expect(await service.ended).toEqual({ code: 1, signal: null });
    expect(service.stderr).toMatch(
      /^The Plant Store needs Node.js 24.16 or a later 24.x, or 26.1 or later.*v24.14.1.*\n$/,
    );
  });

  describe.each(['SIGTERM', 'SIGINT'] as const)('on %s', (signal) => {
    it('ends with 0 while idle connections are open', async () => {
      service = await ServiceProcess.start(folder);
      const url = await service.url();
      const idle = open(url);
      const used = open(url);
      await once(idle, 'connect');
      used.write('GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n');
      await once(used, 'data');

      service.kill(signal);

      expect(await service.ended).toEqual({ code: 0, signal: null });
      idle.destroy();
      used.destroy();
    });

    it('answers every accepted request, and says that the connection closes', async () => {
      service = await ServiceProcess.start(folder);
      const url = await service.url();
      const socket = await beginCreation(url);

      service.kill(signal);
      const answers = readAnswers(socket);
      await until(() => refusesConnections(url));
      socket.write(BODY);

      expect(await answers).toMatchObject([
        { status: 100 },
        { status: 200, headers: { connection: 'close' }, body: { name: 'Fern' } },
      ]);
      expect(await service.ended).toEqual({ code: 0, signal: null });
      expect(readPlants(join(folder, 'data/plants.db'))).toEqual([{ id: 1n, name: 'Fern' }]);
    });
  });

  it('answers all pipelined requests while it closes, and says so in the last answer', async () => {
    service = await ServiceProcess.start(folder);
    const url = await service.url();
    const socket = open(url);
    socket.write('GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(socket, 'readable');

    service.kill('SIGTERM');
    await until(() => refusesConnections(url));
    socket.write([1, 2, 3].map((id) => creation(id).text).join(''));

    const answers = await readAnswers(socket);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(answers.map(({ headers }) => headers.connection === 'close')).toEqual([
      ...Array<boolean>(3).fill(false),
      true,
    ]);
  });

  it('accepts a HEADERS_TIMEOUT longer than the default request time-out of Node', async () => {
    service = await ServiceProcess.start(folder, { HEADERS_TIMEOUT: '6m', REQUEST_TIMEOUT: '10m' });

    expect((await service.post('{"id":1,"name":"Fern"}')).status).toBe(200);
  });

  it('ends within the shutdown time although a request never ends', async () => {
    service = await ServiceProcess.start(folder, { SHUTDOWN_TIMEOUT: '1s' });
    await beginCreation(await service.url());

    service.kill('SIGTERM');

    expect(await service.ended).toEqual({ code: 0, signal: null });
  });

  it('is not ready but serves on during SHUTDOWN_GRACE', async () => {
    service = await ServiceProcess.start(folder, { SHUTDOWN_GRACE: '1s' });
    const url = await service.url();

    service.kill('SIGTERM');
    await until(async () => (await fetch(new URL('/health/ready', url))).status === 503);

    expect((await service.post('{"id":1,"name":"Fern"}')).status).toBe(200);
    expect(await service.ended).toEqual({ code: 0, signal: null });
  });

  it('ends at once on a second signal', async () => {
    service = await ServiceProcess.start(folder, { SHUTDOWN_GRACE: '9s' });
    const url = await service.url();

    service.kill('SIGTERM');
    await until(async () => (await fetch(new URL('/health/ready', url))).status === 503);
    service.kill('SIGINT');

    expect(await service.ended).toEqual({ code: 130, signal: null });
  });

  it('ends with 1 and a sentence when closing takes longer than SHUTDOWN_TIMEOUT', async () => {
    service = await ServiceProcess.start(folder, { SHUTDOWN_TIMEOUT: '300ms' });
    const lock = lockDatabase(join(folder, 'data/plants.db'));
    const socket = await beginCreation(await service.url());
    // Begun, it gets to the store, whether the signal comes first or not.
    socket.write(BODY);
    service.kill('SIGTERM');

    expect(await service.ended).toEqual({ code: 1, signal: null });
    expect(service.stderr).toBe(
      'The service did not shut down within 300 ms (SHUTDOWN_TIMEOUT).\n',
    );
    lock.close();
  });

  it('accepts no new connection while it waits for a request to end', async () => {
    service = await ServiceProcess.start(folder);
    const url = await service.url();
    const socket = await beginCreation(url);

    service.kill('SIGTERM');
    await until(() => refusesConnections(url));

    socket.destroy();
    expect(await service.ended).toEqual({ code: 0, signal: null });
  });

  it('closes connections that ulimit -n leaves no room for, counts them, and logs a line a second', async () => {
    const fewFiles = ['sh', '-c', 'ulimit -n 128 && exec "$0" "$@"'];
    service = await ServiceProcess.start(folder, {}, fewFiles);
    const url = await service.url();
    expect(service.stdout).toMatch(/accepts only \d+ connections instead of 4096, .*ulimit -n/);

    const sockets = Array.from({ length: 200 }, () => open(url).resume());
    let dropped = 0;
    for (const socket of sockets) socket.on('close', () => dropped++);
    const lines = () => [
      ...(service?.stdout ?? '').matchAll(
        /Closed (\d+) new connections within a second: \d+ are open/g,
      ),
    ];
    const told = () => lines().reduce((sum, [, count]) => sum + Number(count), 0);
    await until(() => dropped > 100 && told() === dropped);

    expect(lines().length).toBeLessThan(5);
    sockets.forEach((socket) => socket.destroy());
    await until(async () => {
      const counted = await readMetric(url, 'http_dropped_connections_total').catch(() => NaN);
      return counted >= told();
    });
    expect((await service.post('{"id":1,"name":"Fern"}')).status).toBe(200);
  });

  it('leaves a single database file behind', async () => {
    service = await ServiceProcess.start(folder);
    service.kill('SIGTERM');
    await service.ended;

    expect(existsSync(join(folder, 'data/plants.db'))).toBe(true);
    expect(existsSync(join(folder, 'data/plants.db-wal'))).toBe(false);
  });
});

/** Sends the head of a creation, and resolves once the service asks for the body: it has begun. */
async function beginCreation(url: URL): Promise<Socket> {
  const socket = open(url);
  socket.write(HEAD);
  await once(socket, 'readable');
  // Those that the service cuts.
  socket.on('error', () => undefined);
  return socket;
}

async function refusesConnections(url: URL): Promise<boolean> {
  const socket = open(url);
  const refused = await Promise.race([
    once(socket, 'connect').then(() => false),
    once(socket, 'error').then(() => true),
  ]).catch(() => true);
  socket.destroy();
  return refused;
}

/** The messages of its log, each line of which must be JSON. */
function messagesOf({ stdout }: ServiceProcess): unknown[] {
  const lines = stdout.split('\n').filter((line) => line !== '');
  return lines.map((line) => (JSON.parse(line) as { msg: unknown }).msg);
}

/** What a pattern matches of the output, and its groups, once that is printed. */
async function printed(
  service: ServiceProcess,
  pattern: RegExp,
  output: 'stdout' | 'stderr' = 'stdout',
): Promise<string[]> {
  await service.url();
  await until(() => pattern.test(service[output]));
  return pattern.exec(service[output]) ?? [];
}
