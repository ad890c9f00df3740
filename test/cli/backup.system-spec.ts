import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { makeFolder, removeFolder } from '../support/folder';
import { expectOutcomesMatch, Load } from '../support/load';
import { CommandProcess, plantStore } from '../support/plant-store';
import { PostgresServer } from '../support/postgres';
import { describeOnLinux, describeWith, type RunResult, shell } from '../support/run';
import { useServiceHome } from '../support/service-process';
import { execute, checkIntegrity, readPlants } from '../support/sqlite';
import { until } from '../support/until';

const ADVICE = 'Pass a file created by "plant-store backup".';
const NO_STORE = 'does not exist. Set DATABASE_URL or DATABASE_URL_FILE to an existing store.';

const failed = (stderr: string | RegExp): RunResult => ({
  code: 1,
  stdout: '',
  stderr: expect.stringMatching(stderr) as string,
});

describe('backup and restore', () => {
  const home = useServiceHome();
  let copy: string;
  const inFolder = (name: string): string => join(home.folder, name);
  const environmentFor = (file: string) => ({ DATABASE_URL: `sqlite:${file}` });
  /** Runs a command line in the folder of the test. */
  const run = (command: string, file = home.file, input = ''): Promise<RunResult> =>
    plantStore(command.split(' '), environmentFor(file), { cwd: home.folder, input });
  /** Finds the path to which a restore moved the replaced file. */
  const findOldFile = ({ stderr }: RunResult) =>
    /The old file is now (.*)\.\n/.exec(stderr)?.[1] ?? '';
  /** Contains a store with one plant, and a backup of it. Each test gets copies of them. */
  const template = makeFolder();
  const copyBackup = (): void => {
    copyFileSync(join(template, 'copy.db'), copy);
  };
  beforeAll(async () => {
    const store = join(template, 'plants.db');
    await run('import', store, '{"id":-1,"name":"Fern"}\n');
    await run(`backup ${join(template, 'copy.db')}`, store);
  });
  beforeEach(() => {
    copy = inFolder('copy.db');
    mkdirSync(dirname(home.file));
    copyFileSync(join(template, 'plants.db'), home.file);
  });
  afterAll(() => {
    removeFolder(template);
  });

  it('back up a busy service and restore the copy', async () => {
    const service = await home.start();
    const load = Load.startCompeting([await service.url()], 16, { pause: 10 });
    await until(() => load.withOutcome(200).length > 500);
    const before = load.withOutcome(200);
    const backup = await run('backup copy.db');
    const inUse = await run('restore copy.db');
    await load.stop();
    await service.end();
    const last = home.plants();
    const restored = await run('restore copy.db');

    expect(backup.stderr).toBe(`Backed up ${home.file} to ${copy}.\n`);
    expect(inUse).toEqual(failed(`${home.file} is in use: stop the service first.\n`));
    expect(checkIntegrity(copy)).toBe('ok');
    expectOutcomesMatch(before, readPlants(copy));
    const oldFile = findOldFile(restored);
    expect(restored.stderr).toMatch(`Restored ${home.file} from ${copy}.\n`);
    expect(oldFile).toMatch(`${home.file}.before-`);
    expect(home.plants()).toEqual(readPlants(copy));
    expect(readPlants(oldFile)).toEqual(last);
  });

  it('leave no unfinished backup under its final name after SIGKILL, and no file at all after SIGINT or SIGTERM', async () => {
    execute(
      home.file,
      `INSERT INTO plants (id, name) WITH RECURSIVE ids(id) AS (VALUES (1) UNION ALL
       SELECT id + 1 FROM ids WHERE id < 200000) SELECT id, printf('%0100d', id) FROM ids`,
    );
    const files = () => readdirSync(home.folder).filter((file) => file !== 'data');
    const interrupt = async (signal: NodeJS.Signals): Promise<[unknown, string, string[]]> => {
      for (;;) {
        const command = new CommandProcess(['backup', copy], environmentFor(home.file));
        await until(() => files().length > 0);
        command.child.kill(signal);
        const end = await command.ended;
        if (!files().includes('copy.db')) return [end.signal, end.stderr, files()];
        // This process was delayed, and the backup was complete before the signal.
        rmSync(copy);
      }
    };

    expect(await interrupt('SIGINT')).toEqual(['SIGINT', '', []]);
    expect(await interrupt('SIGTERM')).toEqual(['SIGTERM', '', []]);
    const [signal, , left] = await interrupt('SIGKILL');
    expect(signal).toBe('SIGKILL');
    expect(left.filter((file) => !/\.part(-journal)?$/.test(file))).toEqual([]);
  });

  it('reject a file that is not a complete store, and leave the store unchanged', async () => {
    copyBackup();
    const bytes = readFileSync(copy);
    bytes.fill(0xff, 4096 + 8, 4096 + 200);
    writeFileSync(inFolder('damaged.db'), bytes);
    writeFileSync(inFolder('text.db'), 'not a database, by any means '.repeat(50));

    const repeated = await run('backup copy.db');
    const damaged = await run('restore damaged.db');
    const text = await run('restore text.db');
    const checked = await run('check --deep', inFolder('damaged.db'));

    expect(repeated).toEqual(failed(`^${copy} already exists. Choose another file name.\n$`));
    expect(damaged).toEqual(failed(/^damaged\.db is damaged: /));
    expect([checked.code, checked.stderr]).toEqual([1, 'One check failed.\n']);
    expect(checked.stdout).toMatch(/^FAILED {2}plants: .* is damaged: /m);
    expect(text).toEqual(failed(/^text\.db is not a store: file is not a database\.\n$/));
    expect(home.plants()).toHaveLength(1);
    expect(readdirSync(inFolder('data')).filter((name) => /part|before/.test(name))).toEqual([]);
  });

  it.each([
    ['the replaced file', false],
    ['the directory, but mode 0600, when there is no file', true],
  ])('restore gives the file the owner and mode of %s', async (_what, isMissing) => {
    copyBackup();
    // Only root may change the owner of a file.
    const isRoot = process.getuid?.() === 0;
    const [uid, gid] = isRoot ? [10_001, 10_002] : [userInfo().uid, userInfo().gid];
    for (const [path, mode] of [
      [dirname(home.file), 0o770],
      [home.file, 0o640],
    ] as const) {
      chownSync(path, uid, gid);
      chmodSync(path, mode);
    }
    if (isMissing) {
      for (const suffix of ['', '-wal', '-shm']) rmSync(home.file + suffix, { force: true });
    }

    const { stderr } = await run('restore copy.db');

    expect(stderr).toMatch(/^Restored/);
    const restored = statSync(home.file);
    expect([restored.uid, restored.gid, restored.mode & 0o777]).toEqual([
      uid,
      gid,
      isMissing ? 0o600 : 0o640,
    ]);
  });

  it('reject a file without the table, as check and export do', async () => {
    copyBackup();
    execute(copy, 'DROP TABLE plants');

    const restored = await run('restore copy.db');
    const checked = await run('check', copy);
    const exported = await run('export', copy);

    expect(restored).toEqual(failed('^copy.db is not a store: it has no table plants'));
    expect(checked.stdout).toContain('FAILED  store: it has no table plants');
    expect(exported).toEqual(failed(`${copy}, which cannot be used: it has no table plants`));
    expect(home.plants()).toHaveLength(1);
  });

  it('keep indexes and tables that the operator added', async () => {
    execute(home.file, 'CREATE INDEX by_name ON plants (name); CREATE TABLE notes (text)');
    await run('backup copy.db');

    expect(await run('restore copy.db')).toMatchObject({ code: 0 });
    expect(await run('check')).toMatchObject({
      stdout: expect.stringContaining('ok      store') as string,
    });
  });

  describeOnLinux(() => {
    it.each([
      ['restore pipe', 'data/plants.db'],
      ['restore copy.db', 'pipe'],
      ['backup other.db', 'pipe'],
      ['check', 'pipe'],
    ])('reject a pipe without waiting: %s, with the store %s', async (command, file) => {
      copyBackup();
      execFileSync('mkfifo', [inFolder('pipe')]);

      const { code, stdout, stderr } = await run(command, inFolder(file));

      expect([code, stdout + stderr]).toEqual([1, expect.stringContaining('not a regular file')]);
    });
  });

  it('restore keeps a file that is not a database with its WAL, and says what to do', async () => {
    copyBackup();
    writeFileSync(home.file, 'garbage');
    writeFileSync(`${home.file}-wal`, 'its WAL');

    const restored = await run('restore copy.db');

    expect(restored).toEqual(
      failed(
        `^${home.file} cannot be replaced: file is not a database. Move it and its write-ahead log \\(-wal\\) away, and run the command again.\n$`,
      ),
    );
    expect(readFileSync(home.file, 'utf8')).toBe('garbage');
    expect(readFileSync(`${home.file}-wal`, 'utf8')).toBe('its WAL');
  });

  it('restore rejects a copy that has a write-ahead log', async () => {
    copyBackup();
    writeFileSync(`${copy}-wal`, '');

    const sentence = `^copy.db is a store in use or an incomplete copy. ${ADVICE}\n$`;
    expect(await run('restore copy.db')).toEqual({ ...failed(sentence), code: 2 });
  });

  it('restore replaces the target of a symbolic link, and rejects the store itself', async () => {
    copyBackup();
    symlinkSync(home.file, inFolder('link.db'));

    const restored = await run('restore copy.db', inFolder('link.db'));
    const ontoItself = await run('restore link.db');

    expect(restored.stderr).toMatch(`Restored ${home.file} from ${copy}.\n`);
    expect(ontoItself).toEqual({
      ...failed(`^link.db is a store in use or an incomplete copy. ${ADVICE}\n$`),
      code: 2,
    });
    expect(home.plants()).toHaveLength(1);
  });

  it.each([
    ['restore none.db', `none.db does not exist. ${ADVICE}`],
    ['restore /dev', `/dev is not a regular file. ${ADVICE}`],
    ['import none', "ENOENT: no such file or directory, stat 'none'"],
    ['backup copy.db', `FOLDER/plants.db ${NO_STORE}`],
    ['export /no/x', "ENOENT: no such file or directory, open '/no/.x.*'"],
    ['export', `FOLDER/plants.db ${NO_STORE}`],
  ])('%s reports which file is missing and what to do', async (command, sentence) => {
    const outcome = await run(command, inFolder('plants.db'));

    expect(outcome).toEqual(failed(`^${sentence.replace('FOLDER', home.folder)}\n$`));
    expect(readdirSync(home.folder)).toEqual(['data']);
  });

  describeWith('psql', () => {
    it('check accepts the same URL as psql, with every kind of parameter', async () => {
      const server = await PostgresServer.start();
      const parameters =
        'sslmode=disable&connect_timeout=5&target_session_attrs=read-write&application_name=x&options=-c%20statement_timeout%3D5s';
      const environment = { DATABASE_URL: `${server.url()}?${parameters}` };

      const checked = await plantStore(['check'], environment);
      const { stdout } = await shell('psql "$DATABASE_URL" --csv -c "SHOW statement_timeout"', {
        env: environment,
      });
      await server.remove();

      expect(checked).toMatchObject({ code: 0 });
      expect(stdout).toBe('statement_timeout\n5s\n');
    });
  });

  it.each(['backup', 'restore'])('%s names the tools for PostgreSQL', async (command) => {
    const url = 'postgres://user:secret@127.0.0.1:9/plants';

    const { code, stderr } = await plantStore([command, 'FILE'], { DATABASE_URL: url });

    const sentence =
      'This command is for SQLite files. For PostgreSQL, use pg_dump and pg_restore.\n';
    expect([code, stderr]).toEqual([2, sentence]);
  });
});
