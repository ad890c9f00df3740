/** Runs `backup` and `restore` as processes. Some tests need Linux, one needs root. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  linkSync,
  mkdirSync,
  promises,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { makeFolder, removeFolder } from '../support/folder';
import { expectOutcomesMatch, Load } from '../support/load';
import { CLI_PATH, CommandProcess, plantStore, WITHOUT_ROOT_ACCESS } from '../support/plant-store';
import {
  describeAsRoot,
  describeOnLinux,
  run as runProgram,
  type RunResult,
  shell,
} from '../support/run';
import { memoryFolder } from '../support/run-folder';
import { useServiceHome } from '../support/service-process';
import { checkIntegrity, execute, lockDatabase, query, readPlants } from '../support/sqlite';
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
  const template = makeFolder(memoryFolder());
  const copyBackup = (): void => {
    copyFileSync(join(template, 'copy.db'), copy);
  };
  beforeAll(async () => {
    const store = join(template, 'plants.db');
    await run('import', store, '{"id":-1,"name":"Fern"}\n');
    execute(store, 'CREATE TABLE own (x)');
    await run(`backup ${join(template, 'copy.db')}`, store);
    // A kill leaves the log of the last commits.
    const writer = lockDatabase(store);
    writer.exec("INSERT INTO plants (id, name) VALUES (2, 'Moss'); COMMIT");
    copyFileSync(store, join(template, 'killed.db'));
    copyFileSync(`${store}-wal`, join(template, 'killed.db-wal'));
    writer.exec('DELETE FROM plants WHERE id = 2');
    writer.close();
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

  /** Lists the drafts, and the journals that SQLite creates next to them. */
  const findDrafts = (): string[] =>
    readdirSync(home.folder).filter((name) => name.startsWith('.'));
  /**
   * Starts a command that reads a large store and writes or replaces `copy.db`, and sends it a signal while it
   * writes. Returns the command and a function that runs it again.
   */
  const interrupt = async (line: string, signal: NodeJS.Signals) => {
    const isRestore = line.startsWith('restore');
    const store = isRestore ? copy : home.file;
    execute(
      home.file,
      `INSERT INTO plants (id, name) WITH RECURSIVE ids(id) AS (VALUES (1) UNION ALL
       SELECT id + 1 FROM ids WHERE id < 200000) SELECT id, printf('%0100d', id) FROM ids`,
    );
    const sizeOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    for (;;) {
      if (isRestore) copyBackup();
      else rmSync(copy, { force: true });
      const options = { cwd: home.folder };
      const command = new CommandProcess(line.split(' '), environmentFor(store), options);
      await until(() => findDrafts().some((name) => sizeOf(inFolder(name)) > 0));
      command.child.kill(signal);
      if (signal !== 'SIGSTOP') await command.ended;
      // If this process was delayed, the command has completed the file before the signal.
      if (sizeOf(copy) < 2 ** 20) return { command, runAgain: () => run(line, store) };
      await command.end('SIGKILL');
    }
  };

  it.each([
    ['backup copy.db', 'SIGINT'],
    ['export copy.db', 'SIGTERM'],
    ['restore data/plants.db', 'SIGHUP'],
    ['backup copy.db', 'SIGKILL'],
  ] as const)('%s leaves no draft when %s ends it, except SIGKILL', async (line, signal) => {
    const { command, runAgain } = await interrupt(line, signal);
    const left = findDrafts();

    const again = await runAgain();

    expect(await command.ended).toMatchObject({ signal, stderr: '' });
    expect(left.join()).toMatch(signal === 'SIGKILL' ? /^\.copy\.db\.[0-9a-f]{8}\.part/ : /^$/);
    expect(again.code).toBe(0);
    expect(findDrafts()).toEqual(left);
  });

  it.each(['backup copy.db', 'restore data/plants.db'])(
    '%s fails when another command completes the file first, and removes its draft',
    async (line) => {
      const { command, runAgain } = await interrupt(line, 'SIGSTOP');
      const first = await runAgain();
      command.child.kill('SIGCONT');

      const reason = line.startsWith('restore')
        ? `Another command has created or replaced ${copy} in the meantime`
        : `${copy} already exists. Choose another file name`;
      expect(first.code).toBe(0);
      expect(await command.ended).toMatchObject(failed(`^${reason}.\n$`));
      expect(findDrafts()).toEqual([]);
    },
  );

  it.each([
    'process.exit(1)',
    'setImmediate(() => { throw new Error() }); return new Promise(() => {})',
  ])('writeNewFile removes its draft when the process ends by %s', async (end) => {
    const module = JSON.stringify(join(dirname(CLI_PATH), 'new-file'));
    const script = `require(${module}).writeNewFile('x', () => { ${end} })`;

    const { code } = await runProgram(process.execPath, ['-e', script], { cwd: home.folder });

    expect([code, readdirSync(home.folder)]).toEqual([1, ['data']]);
  });

  const { readFile, writeFile } = promises;
  it.each<[string, string, (path: string) => unknown]>([
    [
      'is damaged',
      'it is damaged: ',
      async (path) => writeFile(path, (await readFile(path)).fill(0xff, 4104, 4296)),
    ],
    [
      'is not a database',
      'file is not a database.\n$',
      (path) => writeFile(path, 'not a database'),
    ],
    [
      'has no table plants',
      'it has no table plants.\n$',
      (path) => {
        execute(path, 'DROP TABLE plants');
      },
    ],
  ])('restore and check reject a file that %s', async (_what, reason, spoil) => {
    copyBackup();
    await spoil(copy);

    const restored = await run('restore copy.db');
    const checked = await run('check --deep', copy);

    expect(restored).toEqual(failed(`^${copy} cannot be used: ${reason}`));
    expect([checked.code, checked.stderr]).toEqual([1, '']);
    expect(checked.stdout).toMatch(/^FAILED {2}store: /m);
    expect(home.plants()).toHaveLength(1);
    expect(readdirSync(inFolder('data')).filter((name) => /part|before/.test(name))).toEqual([]);
  });

  it.each([
    ['restore copy.db', 'the replaced file', 0o640],
    ['restore copy.db', 'the directory, but mode 0600, when there is no file', 0o600],
    ['import', 'the directory, but mode 0600, when there is no file', 0o600],
  ])('%s gives the file the owner and mode of %s', async (command, _what, mode) => {
    copyBackup();
    // Only root may change the owner of a file.
    const isRoot = process.getuid?.() === 0;
    const [uid, gid] = isRoot ? [10_001, 10_002] : [userInfo().uid, userInfo().gid];
    for (const path of [dirname(home.file), home.file]) chownSync(path, uid, gid);
    chmodSync(home.file, mode);
    if (mode === 0o600) rmSync(home.file);

    expect(await run(command)).toMatchObject({ code: 0 });

    const created = statSync(home.file);
    expect([created.uid, created.gid, created.mode & 0o777]).toEqual([uid, gid, mode]);
  });

  // Root is needed to become another user.
  describeAsRoot(() => {
    it('keeps group and mode of the replaced file, also if a killed restore has left it two names', async () => {
      copyBackup();
      for (const path of [dirname(home.file), home.file]) chownSync(path, 10_003, 10_002);
      chmodSync(home.file, 0o660);
      chmodSync(dirname(home.file), 0o770);
      for (const path of [home.folder, copy]) chmodSync(path, 0o755);
      linkSync(home.file, `${home.file}.before-20261129012345678`);
      const wrapper = ['setpriv', '--reuid', '10001', '--regid', '10002', '--clear-groups'];

      const restored = await plantStore(['restore', copy], environmentFor(home.file), {
        cwd: home.folder,
        wrapper,
      });

      expect(restored).toMatchObject({ code: 0 });
      const { uid, gid, mode } = statSync(home.file);
      expect([uid, gid, mode & 0o777]).toEqual([10_001, 10_002, 0o660]);
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

  describe('of a store whose schema is damaged', () => {
    const damage = (): void => {
      const into = [`of=${home.file}`, 'conv=notrunc', 'bs=1', 'seek=2048', 'count=2048'];
      execFileSync('dd', ['if=/dev/zero', 'status=none', ...into]);
    };

    it.each(['plants.db', 'killed.db'])('restore keeps the old file: %s', async (name) => {
      copyBackup();
      copyFileSync(join(template, name), home.file);
      if (name === 'killed.db') copyFileSync(join(template, `${name}-wal`), `${home.file}-wal`);
      damage();

      const exported = await run('export');
      const restored = await run('restore copy.db');

      expect(exported).toEqual(failed(/ run `plant-store restore BACKUP`\.\n$/));
      expect(restored).toMatchObject({ code: 0 });
      expect(home.plants()).toEqual(readPlants(copy));
      expect(statSync(findOldFile(restored)).size).toBe(statSync(home.file).size);
      expect((await run('check --deep')).stdout).toMatch(/^ok {6}store: /m);
    });

    it('restore refuses to run while another process has the store open', async () => {
      copyBackup();
      const reader = new DatabaseSync(home.file);
      reader.exec('SELECT * FROM plants');
      damage();

      const restored = await run('restore copy.db');
      reader.close();

      expect(restored).toEqual(failed(`${home.file} is in use: stop the service first.\n`));
    });
  });

  it.each([
    ['restore data/plants.db', 'other.db', /^Restored /],
    ['backup saved.db', 'data/plants.db', /^Backed up /],
    ['export', 'data/plants.db', /^\{"id":-1,"name":"Fern"\}\nExported 1 plant\.\n$/],
    // Reads the file, but the service could not use the store there.
    ['check --deep', 'data/plants.db', /^FAILED {2}store: EACCES: .*\/data'$/m],
  ])(
    '%s reads a stopped store in a directory that it cannot write',
    async (line, store, expected) => {
      const before = readFileSync(home.file);
      chmodSync(dirname(home.file), 0o500);
      const environment = { ...environmentFor(inFolder(store)), AUTH_TOKENS: 'a-token' };
      const options = { cwd: home.folder, wrapper: WITHOUT_ROOT_ACCESS };

      const { stdout, stderr } = await plantStore(line.split(' '), environment, options);
      chmodSync(dirname(home.file), 0o700);

      expect(stdout + stderr).toMatch(expected);
      expect(readFileSync(home.file).equals(before)).toBe(true);
      expect(readdirSync(dirname(home.file))).toEqual(['plants.db']);
    },
  );

  it.each([
    ['the store by a symbolic link', 'ln -s data/plants.db copy.db', 'the store itself'],
    ['the store by a hard link', 'ln data/plants.db copy.db', 'the store itself'],
    ['a store after a kill', 'cp $T/killed.db-wal copy.db-wal; cp $T/killed.db copy.db', 2],
    ['a link to a store after a kill', 'cp $T/killed* .; ln -s killed.db copy.db', 2],
    ['a backup by a hard link in a read-only directory', 'ln $T/copy.db copy.db; chmod 500 .', 1],
    [
      'a backup with a foreign log',
      'cp $T/copy.db .; cp $T/killed.db-wal copy.db-wal',
      '-wal belongs',
    ],
    [
      'a backup with a rollback journal',
      'cp $T/copy.db .; echo x >copy.db-journal',
      '-journal belongs',
    ],
  ])('restore from %s', async (_what, prepare, expected) => {
    await shell(`T='${template}'; ${prepare}`, { cwd: home.folder });
    const files = readdirSync(home.folder);

    const options = { cwd: home.folder, wrapper: WITHOUT_ROOT_ACCESS };
    const restored = await plantStore(['restore', 'copy.db'], environmentFor(home.file), options);
    chmodSync(home.folder, 0o700);

    const isRestored = typeof expected === 'number';
    expect([restored.code > 0, restored.stderr]).toEqual([
      !isRestored,
      expect.stringContaining(isRestored ? 'Restored ' : expected),
    ]);
    expect(home.plants()).toHaveLength(isRestored ? expected : 1);
    expect(query(home.file, 'SELECT * FROM own')).toEqual([]);
    // SQLite reads a log with the help of this file.
    expect(readdirSync(home.folder).filter((name) => !name.endsWith('-shm'))).toEqual(files);
    expect(readdirSync(dirname(home.file)).join()).not.toContain('part');
  });

  it('restore replaces the target of a symbolic link', async () => {
    copyBackup();
    symlinkSync(home.file, inFolder('link.db'));

    const restored = await run('restore copy.db', inFolder('link.db'));

    expect(restored.stderr).toMatch(`Restored ${home.file} from ${copy}.\n`);
    expect(home.plants()).toHaveLength(1);
  });

  it.each([
    ['restore none.db', `none.db does not exist. ${ADVICE}`],
    ['restore /dev', `/dev is not a regular file. ${ADVICE}`],
    ['import none', "ENOENT: no such file or directory, open 'none'"],
    ['backup copy.db', `FOLDER/plants.db ${NO_STORE}`],
    ['backup data', 'FOLDER/data already exists. Choose another file name.', 'data/plants.db'],
    ['export /no/x', "ENOENT: no such file or directory, open '/no/.x.*.part'"],
    ['export', `FOLDER/plants.db ${NO_STORE}`],
  ])(
    '%s reports which file is missing and what to do',
    async (command, sentence, file = 'plants.db') => {
      const outcome = await run(command, inFolder(file));

      expect(outcome).toEqual(failed(`^${sentence.replace('FOLDER', home.folder)}\n$`));
      expect(readdirSync(home.folder)).toEqual(['data']);
    },
  );

  it.each(['backup', 'restore'])('%s names the tools for PostgreSQL', async (command) => {
    const url = 'postgres://user:secret@127.0.0.1:9/plants';

    const { code, stderr } = await plantStore([command, 'FILE'], { DATABASE_URL: url });

    const sentence =
      'This command is for SQLite files. For PostgreSQL, use pg_dump and pg_restore.\n';
    expect([code, stderr]).toEqual([2, sentence]);
  });
});
