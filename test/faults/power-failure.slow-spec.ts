import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { DiskModel } from '../support/disk-model';
import { type CreateRequest, createRequest, expectOutcomesMatch, Load } from '../support/load';
import { type ServiceProcess, useServiceHome } from '../support/service-process';
import { checkIntegrity, readPlants } from '../support/sqlite';
import { createStraceWrapper, findTracee, readTraces } from '../support/strace';

const ONE_SYNC_FAILS = 'inject=fsync,fdatasync:error=EIO:when=1';
const EXIT = { code: 1, signal: null };

describe('after a failed sync and a power failure, the store has every acknowledged plant', () => {
  const seed = Number(process.env.SEED ?? randomInt(2 ** 31));
  const home = useServiceHome();
  let nextId = 1;
  /** Decides at random, reproducibly, which writes of the last moment have reached the disk. */
  let state = seed;
  const isWritten = () => (state = (state * 48_271) % 2_147_483_647) % 2 === 0;

  /** Creates plants of about a page each until the condition is true or the service has exited. */
  async function create(service: ServiceProcess, isDone = () => false): Promise<CreateRequest[]> {
    let hasEnded = false;
    void service.ended.then(() => (hasEnded = true));
    const { creations } = await Load.run({
      urls: [await service.url()],
      connections: 4,
      backOffMs: 20,
      next: () => (isDone() || hasEnded ? undefined : createRequest(nextId++, 'x'.repeat(4000))),
    });
    return creations;
  }

  const createMany = (service: ServiceProcess, count: number) => {
    const end = nextId + count;
    return create(service, () => nextId >= end);
  };

  /** Opens a connection whose read transaction stays open. */
  function openReader(): DatabaseSync {
    const reader = new DatabaseSync(home.file, { readOnly: true });
    reader.exec('BEGIN');
    reader.prepare('SELECT count(*) FROM plants').get();
    return reader;
  }

  /** Checks what a power failure after each call of a process would leave. */
  function expectNothingLost(model: DiskModel, trace: string, creations: CreateRequest[]): void {
    const copy = join(home.folder, 'copy.db');
    model.replay(trace, () => {
      for (const writes of [() => false, isWritten, () => true]) {
        model.writeDisk(copy, writes);
        expectOutcomesMatch(creations, readPlants(copy));
        expect({ seed, integrity: checkIntegrity(copy) }).toEqual({ seed, integrity: 'ok' });
      }
    });
  }

  function expectOneReason({ stdout }: ServiceProcess): void {
    expect(stdout.match(/"level":50,.*disk I\/O error.*restart the service/g)).toHaveLength(1);
  }

  /** Starts the service again, creates plants, kills it, and checks every moment of its life. */
  async function expectSafeRestart(
    model: DiskModel,
    creations: CreateRequest[],
    ...options: string[]
  ): Promise<void> {
    const trace = join(home.folder, 'last');
    const service = await home.start({}, DiskModel.wrapper(trace, ...options));
    const last = await createMany(service, 20);
    process.kill(findTracee(service.pid), 'SIGKILL');
    await service.ended;

    expectNothingLost(model, trace, creations);
    model.writeDisk(join(home.folder, 'copy.db'), () => false);
    expectOutcomesMatch([...creations, ...last], readPlants(join(home.folder, 'copy.db')));
  }

  it('if a commit failed, also when the next start fails, and the one after it writes in parts while a reader does not finish', async () => {
    const [first, second] = [join(home.folder, 'first'), join(home.folder, 'second')];
    const model = new DiskModel(home.file);
    const failure = 'inject=fsync,fdatasync:error=EIO:when=20';
    const failing = await home.start({}, DiskModel.wrapper(first, '-e', failure));
    const creations = await create(failing);
    expect(await failing.ended).toEqual(EXIT);
    model.replay(first);
    // The reader finds the lost part of the WAL, and considers it committed.
    const reader = openReader();

    const refused = home.spawn({}, DiskModel.wrapper(second, '-e', ONE_SYNC_FAILS));
    expect(await refused.ended).toEqual(EXIT);
    expectNothingLost(model, second, creations);
    const shortWrite = ['-P', `${home.file}-wal`, '-e', 'inject=pwrite64:retval=4096:when=1'];
    await expectSafeRestart(model, creations, '-P', home.file, ...shortWrite);
    reader.close();
  });

  it('if a checkpoint failed, also when a reader had limited an earlier one', async () => {
    const first = join(home.folder, 'first');
    await (await home.start()).end();
    const model = new DiskModel(home.file);
    const failing = await home.start(
      {},
      DiskModel.wrapper(first, '-P', home.file, '-e', ONE_SYNC_FAILS),
    );
    const early = await createMany(failing, 20);
    const reader = openReader();
    const hasCheckpoint = () => readTraces(first).some((line) => line.startsWith('pwrite64'));
    const before = await create(failing, () => nextId % 100 === 0 && hasCheckpoint());
    reader.close();
    const creations = [...early, ...before, ...(await create(failing))];

    expect(await failing.ended).toEqual(EXIT);
    expectOneReason(failing);
    model.replay(first);
    model.markWalSynced();
    await expectSafeRestart(model, creations);
  });

  it('if the checkpoint at the end failed, which the exit code shows', async () => {
    const first = join(home.folder, 'first');
    await (await home.start()).end();
    const model = new DiskModel(home.file);
    const failing = await home.start(
      {},
      DiskModel.wrapper(first, '-P', home.file, '-e', ONE_SYNC_FAILS),
    );
    const creations = await createMany(failing, 20);
    process.kill(findTracee(failing.pid), 'SIGTERM');

    expect(await failing.ended).toEqual(EXIT);
    expectOneReason(failing);
    model.replay(first);
    model.markWalSynced();
    await expectSafeRestart(model, creations);
  });
});

describe('a new store', () => {
  const home = useServiceHome();

  it('syncs every directory that has a new entry', async () => {
    const trace = join(home.folder, 'trace');
    const wrapper = createStraceWrapper('-y', '-e', 'trace=fsync', '-o', trace);
    const service = await home.start({ DATABASE_URL: 'sqlite:one/two/three/plants.db' }, wrapper);
    process.kill(findTracee(service.pid), 'SIGTERM');
    await service.ended;

    const calls = readFileSync(trace, 'latin1').matchAll(/fsync\(\d+<(.*)>\) += 0$/gm);
    const directories = ['', '/one', '/one/two', '/one/two/three'];
    expect([...calls].map(([, path]) => path)).toEqual(
      expect.arrayContaining(directories.map((path) => home.folder + path)),
    );
  });
});
