/**
 * Replays the system calls of a service on a model of the disk, up to each moment, and opens what a power failure would
 * leave. Needs Linux and strace, and takes minutes.
 */
import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { DiskModel } from '../support/disk-model';
import { type CreateRequest, createMany, createUntil, expectOutcomesMatch } from '../support/load';
import { type ServiceProcess, useServiceHome } from '../support/service-process';
import { checkIntegrity, readPlants } from '../support/sqlite';
import { createStraceWrapper, findTracee, readTraces } from '../support/strace';

const ONE_SYNC_FAILS = 'inject=fsync,fdatasync:error=EIO:when=1';
const EXIT = { code: 1, signal: null };
/** Each plant fills about a page. */
const LARGE = { name: 'x'.repeat(4000) };

const home = useServiceHome();

describe('after a failed sync and a power failure, the store has every acknowledged plant', () => {
  const seed = Number(process.env.SEED ?? randomInt(2 ** 31));
  /** Decides at random, reproducibly, which writes of the last moment have reached the disk. */
  let state = seed;
  const drawIsWritten = (): boolean => {
    state = (state * 48_271) % 2_147_483_647;
    return state % 2 === 0;
  };

  let creations: CreateRequest[];
  let model: DiskModel;
  const path = (name: string) => join(home.folder, name);
  beforeEach(() => {
    creations = [];
    model = new DiskModel(home.file);
  });

  /** Opens a connection whose read transaction stays open. */
  function openReader(): DatabaseSync {
    const reader = new DatabaseSync(home.file, { readOnly: true });
    reader.exec('BEGIN');
    reader.prepare('SELECT count(*) FROM plants').get();
    return reader;
  }

  /** Checks what a power failure after each call of a process would leave. */
  function expectNothingLost(trace: string, expected: CreateRequest[]): void {
    const copy = path('copy.db');
    model.replay(trace, () => {
      for (const writes of [() => false, drawIsWritten, () => true]) {
        model.writeDisk(copy, writes);
        expectOutcomesMatch(expected, readPlants(copy));
        expect({ seed, integrity: checkIntegrity(copy) }).toEqual({ seed, integrity: 'ok' });
      }
    });
  }

  /** Starts the service again, creates plants, kills it, and checks every moment of its life. */
  async function expectSafeRestart(...options: string[]): Promise<void> {
    const before = [...creations];
    const service = await home.start({}, DiskModel.wrapper(path('last'), ...options));
    await createMany(20, service, creations, LARGE);
    process.kill(findTracee(service.pid), 'SIGKILL');
    await service.ended;

    expectNothingLost(path('last'), before);
    model.writeDisk(path('copy.db'), () => false);
    expectOutcomesMatch(creations, readPlants(path('copy.db')));
  }

  it('if a commit failed, also when the next start fails, and the one after it writes in parts while a reader does not finish', async () => {
    const failure = 'inject=fsync,fdatasync:error=EIO:when=20';
    const failing = await home.start({}, DiskModel.wrapper(path('first'), '-e', failure));
    await createUntil(() => false, failing, creations, LARGE);
    expect(await failing.ended).toEqual(EXIT);
    model.replay(path('first'));
    // The reader finds the lost part of the WAL, and considers it committed.
    const reader = openReader();

    const refused = home.spawn({}, DiskModel.wrapper(path('second'), '-e', ONE_SYNC_FAILS));
    expect(await refused.ended).toEqual(EXIT);
    expectNothingLost(path('second'), creations);
    const shortWrite = ['-P', `${home.file}-wal`, '-e', 'inject=pwrite64:retval=4096:when=1'];
    await expectSafeRestart('-P', home.file, ...shortWrite);
    reader.close();
  });

  it.each<[string, (failing: ServiceProcess) => unknown]>([
    [
      'a checkpoint failed, also when a reader had limited an earlier one',
      async (failing) => {
        const reader = openReader();
        const hasCheckpoint = () =>
          readTraces(path('first')).some((line) => line.startsWith('pwrite64'));
        const isLimited = () => creations.length % 100 === 0 && hasCheckpoint();
        await createUntil(isLimited, failing, creations, LARGE);
        reader.close();
        await createUntil(() => false, failing, creations, LARGE);
      },
    ],
    [
      'the checkpoint at the end failed, which the exit code shows',
      ({ pid }) => void process.kill(findTracee(pid), 'SIGTERM'),
    ],
  ])('if %s', async (_name, fail) => {
    await (await home.start()).end();
    model = new DiskModel(home.file);
    const wrapper = DiskModel.wrapper(path('first'), '-P', home.file, '-e', ONE_SYNC_FAILS);
    const failing = await home.start({}, wrapper);
    await createMany(20, failing, creations, LARGE);

    await fail(failing);

    expect(await failing.ended).toEqual(EXIT);
    const reasons = failing.stdout.match(/"level":50,.*disk I\/O error.*restart the service/g);
    expect(reasons).toHaveLength(1);
    model.replay(path('first'));
    model.markWalSynced();
    await expectSafeRestart();
  });
});

it('a new store syncs every directory that has a new entry', async () => {
  const trace = join(home.folder, 'trace');
  const wrapper = createStraceWrapper('-y', '-e', 'trace=fsync', '-o', trace);
  const service = await home.start({ DATABASE_URL: 'sqlite:one/two/three/plants.db' }, wrapper);
  process.kill(findTracee(service.pid), 'SIGTERM');
  await service.ended;

  const calls = readFileSync(trace, 'latin1').matchAll(/fsync\(\d+<(.*)>\) += 0$/gm);
  const directories = ['', '/one', '/one/two', '/one/two/three'];
  expect([...calls].map(([, directory]) => directory)).toEqual(
    expect.arrayContaining(directories.map((directory) => home.folder + directory)),
  );
});
