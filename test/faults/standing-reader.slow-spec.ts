import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { errorNumbers } from '../support/error-bodies';
import { DiskModel } from '../support/disk-model';
import { type CreateRequest, createRequest, expectOutcomesMatch, Load } from '../support/load';
import { type ServiceProcess, useServiceHome } from '../support/service-process';
import { checkIntegrity, readPlants } from '../support/sqlite';
import { createStraceWrapper, findTracee } from '../support/strace';

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

  /** Checks what a power failure would leave. Copies it first: closing the last connection empties the WAL. */
  function expectNothingLost(model: DiskModel): void {
    const copy = join(home.folder, 'copy.db');
    model.copyDisk(home.file, copy);
    reader.close();
    expectOutcomesMatch(creations, readPlants(copy));
    expect(checkIntegrity(copy)).toBe('ok');
    expect(model.lostBytes).toBe(0);
  }

  it('the service recovers from a failed sync, and loses nothing in a power failure', async () => {
    const trace = join(home.folder, 'trace');
    const model = new DiskModel(`${home.file}-wal`);
    const failure = 'inject=fsync,fdatasync:error=EIO:when=60..66';
    service = await home.start({}, DiskModel.wrapper(trace, '-e', failure));
    openReader();
    let before = Infinity;
    await create(() => {
      if (
        before === Infinity &&
        count(errorNumbers.outcomeUnknown) > 0 &&
        count(errorNumbers.unavailable) > 0
      )
        before = count(200);
      return count(200) > before + 100;
    });
    expect(await service.getStatus('/health/ready')).toBe(200);
    await kill();

    model.applyTraces(trace);
    expectNothingLost(model);
  });

  it('the service starts with a partly lost WAL, and loses nothing in a power failure', async () => {
    const [first, second] = [join(home.folder, 'first'), join(home.folder, 'second')];
    const model = new DiskModel(`${home.file}-wal`);
    const failure = 'inject=fsync,fdatasync:error=EIO:when=60+';
    service = await home.start({}, DiskModel.wrapper(first, '-e', failure));
    await create(
      () => count(errorNumbers.outcomeUnknown) > 0 && count(errorNumbers.unavailable) > 0,
    );
    await kill();
    model.applyTraces(first);
    const lostBefore = model.lostBytes;
    // The reader finds the frames of the failed batch in the WAL and considers them committed.
    openReader();

    service = await home.start({}, DiskModel.wrapper(second));
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
