import { globSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { TOKEN } from '../support/application';
import { errorNumbers } from '../support/error-bodies';
import { DiskModel } from '../support/disk-model';
import { type CreateRequest, createRequest, expectOutcomesMatch, Load } from '../support/load';
import { type ServiceProcess, useServiceHome } from '../support/service-process';
import { checkIntegrity, readPlants } from '../support/sqlite';
import { createStraceWrapper, findTracee } from '../support/strace';
import { until } from '../support/until';

/** Returns the paths of the files that a process has open. */
function openFiles(pid: number): string[] {
  return globSync(`/proc/${pid}/fd/*`).flatMap((link) => {
    try {
      return readlinkSync(link);
    } catch {
      return [];
    }
  });
}

describe('with a long-running reader on the same file', () => {
  const home = useServiceHome();
  let reader: DatabaseSync;
  let service: ServiceProcess;
  let nextId = 1;
  let creations: CreateRequest[];
  beforeEach(() => {
    creations = [];
  });

  /** Opens a connection whose read transaction stays open. */
  function openReader(): void {
    reader = new DatabaseSync(home.file);
    reader.exec('BEGIN');
    reader.prepare('SELECT count(*) FROM plants').get();
  }

  /** Creates plants until the condition is true. */
  async function create(isDone: () => boolean): Promise<void> {
    await Load.run({
      urls: [await service.url()],
      connections: 4,
      backOffMs: 20,
      next: () => (isDone() ? undefined : createRequest(nextId++, 'x'.repeat(1000))),
      creations,
    });
  }

  const count = (outcome: number) => creations.filter((each) => each.outcome === outcome).length;

  async function kill(): Promise<void> {
    process.kill(findTracee(service.pid), 'SIGKILL');
    await service.ended;
  }

  /** Checks what a power failure would leave. */
  function expectNothingLost(model: DiskModel): void {
    const copy = join(home.folder, 'copy.db');
    model.copyDisk(home.file, copy);
    expectOutcomesMatch(creations, readPlants(copy));
    expect(checkIntegrity(copy)).toBe('ok');
    expect(model.lostBytes).toBe(0);
  }

  it('the service with a partly lost WAL starts only when the reader has finished, and loses nothing in a power failure', async () => {
    const [first, second] = [join(home.folder, 'first'), join(home.folder, 'second')];
    const model = new DiskModel(`${home.file}-wal`);
    const failure = 'inject=fsync,fdatasync:error=EIO:when=60+';
    service = await home.start({}, DiskModel.wrapper(first, '-e', failure));
    // The service exits after the failed sync.
    await create(() => count(errorNumbers.outcomeUnknown) > 0);
    expect(await service.ended).toEqual({ code: 1, signal: null });
    model.applyTraces(first);
    const lostBefore = model.lostBytes;
    // The reader finds the frames of the failed batch in the WAL and considers them committed.
    openReader();
    const refused = home.spawn({ AUTH_TOKENS: 'a-token' });
    await expect(refused.waitForOutput(/Listening/)).rejects.toThrow(
      'another process, such as a backup, has been reading the file',
    );
    expect(await refused.ended).toEqual({ code: 1, signal: null });
    service = home.spawn({ AUTH_TOKENS: TOKEN }, DiskModel.wrapper(second));
    // A reader that closes last copies the WAL itself.
    await until(() => openFiles(findTracee(service.pid)).includes(`${home.file}-wal`));
    reader.close();

    const before = count(200);
    await create(() => count(200) > before + 100);
    await kill();

    model.applyTraces(second);
    expect(lostBefore).toBeGreaterThan(0);
    expectNothingLost(model);
  });
});

describe('a new store', () => {
  const home = useServiceHome();

  it('syncs every directory that has a new entry', async () => {
    const wrapper = createStraceWrapper(
      '-y',
      '-e',
      'trace=fsync',
      '-o',
      join(home.folder, 'trace'),
    );
    const service = await home.start({ DATABASE_URL: 'sqlite:one/two/three/plants.db' }, wrapper);
    process.kill(findTracee(service.pid), 'SIGTERM');
    await service.ended;

    const trace = readFileSync(join(home.folder, 'trace'), 'latin1');
    const synced = [...trace.matchAll(/fsync\(\d+<(.*)>\) += 0$/gm)].map(([, path]) => path);
    expect(synced).toEqual(
      expect.arrayContaining(
        ['', '/one', '/one/two', '/one/two/three'].map((path) => home.folder + path),
      ),
    );
  });
});
