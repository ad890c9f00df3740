import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { creation } from '../support/load';
import { readMetric } from '../support/metrics';
import { shell } from '../support/run';
import { type ServiceProcess, useServiceHome } from '../support/service-process';
import { lockDatabase, readPlants } from '../support/sqlite';
import { until } from '../support/until';
import { open, readAnswers } from '../support/wire';

/** A creation that waits to be asked for its body. */
const [HEAD = '', BODY = ''] = creation(1)
  .text.replace('Host: x', 'Host: x\r\nExpect: 100-continue')
  .split(/(?<=\r\n\r\n)/);

describe('the service as a process', () => {
  const home = useServiceHome();

  it("logs under the names of Nest's classes, although it is bundled", async () => {
    const service = await home.start();

    expect(service.stdout).toContain('"context":"RouterExplorer"');
    expect(service.stdout).toMatch(/"Plants are stored in the SQLite file \/.*plants\.db"/);
  });

  describe('without AUTH_TOKENS', () => {
    it('prints a curl line that creates a plant when pasted', async () => {
      const service = home.begin();
      const [line = ''] = await printed(service, /^curl .*$/m, 'stderr');

      const { stdout } = await shell(line);

      expect(stdout).toContain('HTTP/1.1 200 OK');
      expect(stdout).toContain('{"name":"Fern","tag":"shade"}');
      expect(home.plants()).toHaveLength(1);
    });

    it('prints another id and another token at the next start', async () => {
      const lines = [];
      for (let start = 0; start < 2; start++) {
        const service = home.begin();
        lines.push((await printed(service, /Bearer (\S+)' .*"id":(\d+)/, 'stderr')).slice(1));
        await service.end();
      }

      expect(lines[0]?.[0]).not.toBe(lines[1]?.[0]);
      expect(lines[0]?.[1]).not.toBe(lines[1]?.[1]);
    });

    it('keeps the standard output one JSON object a line', async () => {
      const service = home.begin();
      await printed(service, /^curl .*$/m, 'stderr');
      await service.end();

      expect(service.lines.map(({ msg }) => msg)).toContain(
        `Swagger UI is at ${(await service.url()).origin}/docs`,
      );
    });

    it('does not start in production', async () => {
      const service = home.begin({ NODE_ENV: 'production' });

      expect(await service.ended).toEqual({ code: 1, signal: null });
      expect(service.stderr).toBe(
        'AUTH_TOKENS, AUTH_TOKENS_FILE or AUTH_ISSUER must be set when NODE_ENV is production\n',
      );
      expect(existsSync(join(home.folder, 'data'))).toBe(false);
    });
  });

  it('names every bad variable and ends with 1', async () => {
    const service = home.begin({ PORT: 'x', DOCS: 'x' });

    expect(await service.ended).toEqual({ code: 1, signal: null });
    expect(service.stderr).toBe(
      'PORT must be a port from 0 to 65535\nDOCS must be true or false\n',
    );
  });

  it.each([
    ['file/plants.db', /\/file\/plants\.db cannot be used: EEXIST: file already exists, mkdir '.*/],
    [
      '/proc/no/plants.db',
      /\/proc\/no\/plants\.db cannot be used: ENOENT: no such .* '\/proc\/no'/,
    ],
  ])('ends with one sentence when the database %s cannot be used', async (database, reason) => {
    writeFileSync(join(home.folder, 'file'), '');
    const service = home.begin({ DATABASE_URL: `sqlite:${database}` });

    expect(await service.ended).toEqual({ code: 1, signal: null });
    expect(service.stderr).toMatch(
      new RegExp(`^The database file (?:/.*)?${reason.source} \\(DATABASE_URL\\)\\.\n$`),
    );
    expect(service.stdout).not.toContain('cannot be used');
  });

  it('makes the directories of the database', async () => {
    const service = await home.start({ DATABASE_URL: 'sqlite:a/b/c/plants.db' });

    expect((await service.post('{"id":1,"name":"Fern"}')).status).toBe(200);
    expect(readPlants(join(home.folder, 'a/b/c/plants.db'))).toHaveLength(1);
  });

  it('warns in the log of a variable that is nearly one of its own', async () => {
    const service = await home.start({ DATABSE_URL: 'postgres://localhost/plants' });

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
    const service = home.begin({ PORT: String(port) });

    expect(await service.ended).toEqual({ code: 1, signal: null });
    expect(service.stderr).toBe(
      `Cannot listen on 127.0.0.1:${port}: address already in use. Change PORT.\n`,
    );
    expect(service.stdout).not.toContain('in use');
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
    const service = home.begin({ HOST: host });

    expect(await service.ended).toEqual({ code: 1, signal: null });
    expect(service.stderr).toEqual(sentence);
  });

  it('says why the operating system refuses the database file', async () => {
    const file = join(home.folder, 'plants.db');
    writeFileSync(file, '', { mode: 0o000 });
    // Root may do anything unless it gives up the capability.
    const wrapper = process.getuid?.() === 0 ? ['setpriv', '--bounding-set', '-dac_override'] : [];
    const service = home.begin({ DATABASE_URL: `sqlite:${file}` }, wrapper);

    expect(await service.ended).toEqual({ code: 1, signal: null });
    expect(service.stderr).toMatch(
      /^The database file \S+ cannot be used: EACCES: permission denied, .* \(DATABASE_URL\)\.\n$/,
    );
  });

  it('listens where HOST says, and nowhere else', async () => {
    // All of 127.0.0.0/8 is the loopback interface.
    const service = await home.start({ HOST: '127.0.0.2' });
    const url = await service.url();

    expect((await fetch(new URL('/health/live', url))).status).toBe(200);
    url.hostname = '127.0.0.1';
    expect(await refusesConnections(url)).toBe(true);
  });

  it('ends with one sentence when Node.js is too old', async () => {
    const preload = join(home.folder, 'old.cjs');
    writeFileSync(
      preload,
      "Object.defineProperty(process.versions, 'node', { value: '24.14.1' });" +
        "Object.defineProperty(process, 'version', { value: 'v24.14.1' });",
    );
    const service = home.begin({ NODE_OPTIONS: `--require ${preload}` });

    expect(await service.ended).toEqual({ code: 1, signal: null });
    expect(service.stderr).toMatch(
      /^The Plant Store needs Node.js 24.16 or a later 24.x, or 26.1 or later.*v24.14.1.*\n$/,
    );
  });

  describe.each(['SIGTERM', 'SIGINT'] as const)('on %s', (signal) => {
    it('ends with 0 while idle connections are open', async () => {
      const service = await home.start();
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
      const service = await home.start();
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
      expect(home.plants()).toEqual([{ id: 1n, name: 'Fern' }]);
    });
  });

  it('answers all pipelined requests while it closes, and says so in the last answer', async () => {
    const service = await home.start();
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
    const service = await home.start({ HEADERS_TIMEOUT: '6m', REQUEST_TIMEOUT: '10m' });

    expect((await service.post('{"id":1,"name":"Fern"}')).status).toBe(200);
  });

  it('ends within the shutdown time although a request never ends', async () => {
    const service = await home.start({ SHUTDOWN_TIMEOUT: '3s' });
    await beginCreation(await service.url());

    service.kill('SIGTERM');

    expect(await service.ended).toEqual({ code: 0, signal: null });
  });

  it('is not ready but serves on during SHUTDOWN_GRACE', async () => {
    const service = await home.start({ SHUTDOWN_GRACE: '1s' });

    service.kill('SIGTERM');
    await until(async () => (await service.statusOf('/health/ready')) === 503);

    expect((await service.post('{"id":1,"name":"Fern"}')).status).toBe(200);
    expect(await service.ended).toEqual({ code: 0, signal: null });
  });

  it('ends at once on a second signal', async () => {
    const service = await home.start({ SHUTDOWN_GRACE: '9s' });

    service.kill('SIGTERM');
    await until(async () => (await service.statusOf('/health/ready')) === 503);
    service.kill('SIGINT');

    expect(await service.ended).toEqual({ code: 130, signal: null });
  });

  it('ends with 1 and a sentence when closing takes longer than SHUTDOWN_TIMEOUT', async () => {
    const service = await home.start({ SHUTDOWN_TIMEOUT: '300ms' });
    const lock = lockDatabase(home.file);
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

  it('closes connections that ulimit -n leaves no room for, counts them, and logs a line a second', async () => {
    const fewFiles = ['sh', '-c', 'ulimit -n 128 && exec "$0" "$@"'];
    const service = await home.start({}, fewFiles);
    const url = await service.url();
    expect(service.stdout).toMatch(/accepts only \d+ connections instead of 4096, .*ulimit -n/);

    const sockets = Array.from({ length: 200 }, () => open(url).resume());
    let dropped = 0;
    for (const socket of sockets) socket.on('close', () => dropped++);
    const lines = () => [
      ...service.stdout.matchAll(/Closed (\d+) new connections within a second: \d+ are open/g),
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
    const service = await home.start();
    await service.end();

    expect(existsSync(home.file)).toBe(true);
    expect(existsSync(join(home.folder, 'data/plants.db-wal'))).toBe(false);
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
