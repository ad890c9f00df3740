import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, closeSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PostgresServer } from '../test/support/postgres';
import { memoryOf } from './server';
import type { Subject } from './statistics';

/** Tools of the databases, and the `plant-store` commands that do the same. */

/** How long PostgreSQL waits for further commits before it syncs one, in microseconds: its `commit_delay`. */
const COMMIT_DELAY_US = 100;

/**
 * pgbench with one row per transaction, and as many clients as the load has connections: with the default
 * settings of PostgreSQL, and with its own group commit. Both sync every commit.
 */
export async function pgbench(
  postgres: PostgresServer,
  database: string,
  folder: string,
  seconds: number,
  reference: string,
): Promise<Subject[]> {
  await postgres.execute(
    `CREATE TABLE plants (id bigint PRIMARY KEY, name text NOT NULL, tag text);
     CREATE SEQUENCE ids CACHE 100`,
    database,
  );
  const script = join(folder, 'insert.sql');
  writeFileSync(script, `INSERT INTO plants VALUES (nextval('ids'), 'Fern', 'shade');\n`);
  const args = ['-n', '-M', 'prepared', '-c', '64', '-T', String(seconds), '-f', script];
  return [0, COMMIT_DELAY_US].map((delay) => ({
    name: `pgbench, one insert per transaction${delay === 0 ? '' : `, commit_delay ${delay} µs`}`,
    reference,
    turn: async () => {
      const settings = { PGOPTIONS: `-c commit_delay=${delay}` };
      const { output } = await run('pgbench', [...args, postgres.url(database)], settings);
      return { rate: Number(/tps = ([\d.]+)/.exec(output)?.[1]) };
    },
  }));
}

/** Whether a tool is on the PATH. */
export function hasTool(name: string): boolean {
  return spawnSync(name, ['--version']).status === 0;
}

/** Writes the same plants as JSON Lines and as CSV, in id order like an export. */
function writePlants(plants: number, lines: string, csv: string): void {
  for (let id = 1; id <= plants;) {
    let [json, fields] = ['', ''];
    for (const end = Math.min(plants, id + 9999); id <= end; id++) {
      json += `{"id":${id * 7919},"name":"Fern ${id}","tag":"shade"}\n`;
      fields += `${id * 7919},Fern ${id},shade\n`;
    }
    appendFileSync(lines, json);
    appendFileSync(csv, fields);
  }
}

/** Pairs of `import` and `export` with the tools of SQLite and PostgreSQL, if these are installed. */
export function dataCommands(plants: number, folder: string, postgres: PostgresServer): Subject[] {
  const [lines, csv] = [join(folder, 'plants.ndjson'), join(folder, 'plants.csv')];
  writePlants(plants, lines, csv);
  const [own, other] = [join(folder, 'own.db'), join(folder, 'other.db')];
  const url = postgres.url();
  const columns = 'name text NOT NULL, tag text';
  const query = 'SELECT id, name, tag FROM other ORDER BY id';
  const target = join(folder, 'output');
  const emptyFile = (file: string) => () => {
    for (const end of ['', '-wal', '-shm', '-journal']) rmSync(file + end, { force: true });
  };
  const empty = (statements: string) => () => postgres.execute(`${statements}; CHECKPOINT`);

  /** Creates a command and the tool that does the same. `prepare` runs before a turn, and is not measured. */
  const pair = (
    store: string,
    [database, args, prepare]: [string, string[], (() => unknown)?],
    [name, tool, toolArgs, prepareTool]: [string, string, string[], (() => unknown)?],
  ): Subject[] => {
    const reference = `plant-store ${args[0]}, ${store}`;
    const cli = ['dist/cli/plant-store.js', ...args];
    const turn = (program: string, own: string[], before?: () => unknown) => async () => {
      await before?.();
      const { seconds, peak } = await run(program, own, { DATABASE_URL: database }, target);
      return { rate: plants / seconds, peak };
    };
    return [
      { name: reference, reference, turn: turn(process.execPath, cli, prepare) },
      { name, reference, turn: turn(tool, toolArgs, prepareTool) },
    ];
  };
  const sqlite = [
    ...pair(
      'SQLite',
      [`sqlite:${own}`, ['import', lines], emptyFile(own)],
      // prettier-ignore
      ['sqlite3 .import', 'sqlite3', [
        other, `CREATE TABLE other (id INTEGER PRIMARY KEY, ${columns}) STRICT`,
        'BEGIN', '.mode csv', `.import ${csv} other`, 'COMMIT',
      ], emptyFile(other)],
    ),
    ...pair(
      'SQLite',
      [`sqlite:${own}`, ['export']],
      ['sqlite3 -json', 'sqlite3', ['-json', other, query]],
    ),
  ];
  const newTable = `DROP TABLE IF EXISTS other; CREATE TABLE other (id bigint PRIMARY KEY, ${columns})`;
  const postgresql = [
    ...pair(
      'PostgreSQL',
      [url, ['import', lines], empty('DROP TABLE IF EXISTS plants, plants_migrations')],
      // prettier-ignore
      ['psql \\copy from', 'psql', [url, '-qc', `\\copy other from '${csv}' csv`], empty(newTable)],
    ),
    ...pair(
      'PostgreSQL',
      [url, ['export']],
      ['psql \\copy to', 'psql', [url, '-qc', `\\copy (${query}) to '${target}'`]],
    ),
  ];
  return [...(hasTool('sqlite3') ? sqlite : []), ...(hasTool('psql') ? postgresql : [])];
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
  let [output, errors, peak] = ['', '', 0];
  child.stdout?.on('data', (text) => (output += String(text)));
  child.stderr?.on('data', (text) => (errors += String(text)));
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
