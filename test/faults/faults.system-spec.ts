/** Makes Node.js, its clock, the thread of SQLite or its files fail in a process of the service. */
import { renameSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createRequest } from '../support/load';
import { type ServiceProcess, useServiceHome } from '../support/service-process';
import { openConnection } from '../support/wire';

describe('the service', () => {
  const home = useServiceHome();
  let service: ServiceProcess;
  let nextId = 1;

  /** Returns the variables that make Node.js run a script first. */
  function preload(script: string): NodeJS.ProcessEnv {
    const file = join(home.folder, 'preload.cjs');
    writeFileSync(file, script);
    return { NODE_OPTIONS: `--require ${file}` };
  }

  /** Starts the service. The script runs first, in the main thread. */
  async function startWith(script: string, environment: NodeJS.ProcessEnv = {}): Promise<void> {
    const inMainThread = `if (require('node:worker_threads').isMainThread) { ${script} }`;
    service = await home.start({ ...preload(inMainThread), ...environment });
  }

  async function create(): Promise<number> {
    return (await service.post(`{"id":${nextId++},"name":"Fern"}`)).status;
  }

  it('does not start with a SQLite version that has the WAL-reset bug', async () => {
    const script = `const sqlite = require('node:sqlite');
      sqlite.DatabaseSync = class extends sqlite.DatabaseSync {
        constructor(...args) { super(...args); this.function('sqlite_version', () => '3.51.2'); }
      };`;

    service = home.spawn(preload(script));

    expect(await service.ended).toEqual({ code: 1, signal: null });
    expect(service.stderr).toMatch(
      /^DATABASE_URL names the file \S+, which cannot be used: SQLite 3\.51\.2 may lose stored plants .*\.\n$/,
    );
  });

  it('exits with code 1 and one sentence when its SQLite thread ends, waits for no incomplete request, and keeps all plants', async () => {
    // These times are longer than the test may take.
    const times = { REQUEST_TIMEOUT: '10m', SHUTDOWN_TIMEOUT: '20m' };
    const script = `
      const threads = require('node:worker_threads');
      threads.Worker = class extends threads.Worker {
        constructor(...args) { super(...args); process.on('SIGUSR2', () => this.terminate()); }
      };`;
    await startWith(script, times);
    const url = await service.url();
    openConnection(url).resume().write(createRequest(0).text.slice(0, -5));
    expect(await create()).toBe(200);

    service.kill('SIGUSR2');

    expect(await service.ended).toEqual({ code: 1, signal: null });
    const reasons = service.stdout.match(/"level":50,.*plants\.db: .*restart the service\./g);
    expect(reasons).toHaveLength(1);
    service = await home.start();
    expect(await create()).toBe(200);
    expect(home.plants()).toHaveLength(2);
  });

  it.each([864e5, -864e5])('keeps working when the clock jumps by %d ms', async (jump) => {
    await startWith(
      `const { now } = Date;
      process.on('SIGUSR2', () => { Date.now = () => now() + ${jump}; console.log('jumped'); });`,
    );

    service.kill('SIGUSR2');
    await service.waitForOutput(/jumped/);

    expect(await create()).toBe(200);
    expect(await service.getStatus('/health/ready')).toBe(200);
  });

  it('uses its files again when they are renamed back', async () => {
    service = await home.start();
    const directory = dirname(home.file);
    const other = join(home.folder, 'other');
    expect(await create()).toBe(200);

    renameSync(directory, other);
    expect(await create()).toBe(503);
    renameSync(other, directory);
    await service.waitUntilReady();

    expect(await create()).toBe(200);
    expect(home.plants()).toHaveLength(2);
  });

  it('exits with code 1 on an unhandled rejection, and logs the cause', async () => {
    await startWith(
      `process.on('SIGUSR2', () => void Promise.reject(new Error('nobody foresaw this')));`,
    );
    expect(await create()).toBe(200);

    service.kill('SIGUSR2');

    expect(await service.ended).toEqual({ code: 1, signal: null });
    expect(service.stdout).toMatch(/"level":60.*"message":"nobody foresaw this"/);
    expect(home.plants()).toHaveLength(1);
  });

  it('exits when its -shm file is truncated, and keeps all plants after a restart', async () => {
    service = await home.start();
    expect(await create()).toBe(200);

    truncateSync(`${home.file}-shm`);
    await expect(create()).rejects.toThrow('fetch failed');

    expect(await service.ended).toEqual({ code: null, signal: 'SIGBUS' });
    service = await home.start();
    expect(await create()).toBe(200);
    expect(home.plants()).toHaveLength(2);
  });
});
