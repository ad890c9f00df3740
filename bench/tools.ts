import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, closeSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PostgresServer } from '../test/support/postgres';
import { memoryOf } from './server';
import type { Subject } from './statistics';

/**
 * PostgreSQL's own load generator, with one row per transaction and as many clients as the load has connections.
 * Returns nothing if it is not on the PATH.
 */
export async function pgbench(
  postgres: PostgresServer,
  database: string,
  folder: string,
  seconds: number,
  reference: string,
): Promise<Subject[]> {
  if (spawnSync('pgbench', ['--version']).status !== 0) return [];
  await postgres.execute(
    `CREATE TABLE plants (id bigint PRIMARY KEY, name text NOT NULL, tag text);
     CREATE SEQUENCE ids CACHE 100`,
    database,
  );
  const script = join(folder, 'insert.sql');
  writeFileSync(script, `INSERT INTO plants VALUES (nextval('ids'), 'Fern', 'shade');\n`);
  const args = ['-n', '-M', 'prepared', '-c', '64', '-T', String(seconds), '-f', script];
  const turn = async () => {
    const { output } = await run('pgbench', [...args, postgres.url(database)]);
    return { rate: Number(/tps = ([\d.]+)/.exec(output)?.[1]) };
  };
  return [{ name: 'pgbench, one insert per transaction', reference, turn }];
}

/** Writes plants as JSON Lines, in id order like an export. */
function writePlants(plants: number, file: string): void {
  for (let id = 1; id <= plants;) {
    let lines = '';
    for (const end = Math.min(plants, id + 9999); id <= end; id++) {
      lines += `{"id":${id * 7919},"name":"Fern ${id}","tag":"shade"}\n`;
    }
    appendFileSync(file, lines);
  }
}

/** `import` into an empty store and `export` from it, on each kind of store. */
export function dataCommands(plants: number, folder: string, postgres: PostgresServer): Subject[] {
  const lines = join(folder, 'plants.ndjson');
  const output = join(folder, 'output');
  writePlants(plants, lines);
  const file = join(folder, 'imported.db');
  const removeFile = () => {
    for (const end of ['', '-wal', '-shm']) rmSync(file + end, { force: true });
  };
  const dropTables = () =>
    postgres.execute('DROP TABLE IF EXISTS plants, plants_migrations; CHECKPOINT');

  /** Creates a turn of a command. `prepare` runs before it, and is not measured. */
  const createTurn = (args: string[], url: string, prepare?: () => unknown) => async () => {
    await prepare?.();
    const command = ['dist/cli/plant-store.js', ...args];
    const { seconds, peak } = await run(process.execPath, command, { DATABASE_URL: url }, output);
    return { rate: plants / seconds, peak };
  };
  const sqlite = `sqlite:${file}`;
  const postgresql = postgres.url();
  return [
    { name: 'import, SQLite', turn: createTurn(['import', lines], sqlite, removeFile) },
    { name: 'export, SQLite', turn: createTurn(['export'], sqlite) },
    { name: 'import, PostgreSQL', turn: createTurn(['import', lines], postgresql, dropTables) },
    { name: 'export, PostgreSQL', turn: createTurn(['export'], postgresql) },
  ];
}

/** Runs a program until it exits. If `target` is set, its output is written to this file. */
async function run(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
  target?: string,
): Promise<{ output: string; seconds: number; peak: number }> {
  const file = target === undefined ? 'pipe' : openSync(target, 'w');
  const began = performance.now();
  const child: ChildProcess = spawn(program, args, {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', file, 'pipe'],
  });
  let output = '';
  let errors = '';
  let peak = 0;
  child.stdout?.on('data', (text) => {
    output += String(text);
  });
  child.stderr?.on('data', (text) => {
    errors += String(text);
  });
  // The peak can be read only while the process is running.
  const timer = setInterval(() => {
    peak = memoryOf(child).peak || peak;
  }, 20);
  const [code] = (await once(child, 'close')) as [number | null];
  clearInterval(timer);
  const seconds = (performance.now() - began) / 1000;
  if (typeof file === 'number') closeSync(file);
  if (code !== 0) throw new Error(`${program} ${args.join(' ')}: ${errors}`);
  return { output, seconds, peak };
}
