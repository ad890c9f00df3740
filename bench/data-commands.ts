import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, closeSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Client } from 'pg';
import { PostgresServer } from '../test/support/postgres';
import makeRunFolder from '../test/support/run-folder';
import { spreadOf } from './statistics';

/**
 * `export` and `import` against the database's own tool on the same rows, in interleaved rounds. A
 * program of its own too: `node .bench/bench/data-commands.js --plants 10000000 --rounds 1 --tool psql`.
 */

const PROGRAM = join(process.cwd(), 'dist/program/plant-store.js');

/** Runs in a command before it, and writes its peak memory in KiB to descriptor 3 in the end. */
const REPORT_MEMORY =
  'data:text/javascript,import{isMainThread}from"node:worker_threads";import{writeSync}from"node:fs";' +
  'if(isMainThread)process.on("exit",()=>writeSync(3,String(process.resourceUsage().maxRSS)))';

const QUERY = 'SELECT id, name, tag FROM plants ORDER BY id';

/** One command against one tool. */
interface Scene {
  readonly name: string;
  readonly database: Database;
  /** Of the command. */
  readonly seconds: number[];
  /** Of the tool. */
  readonly toolSeconds: number[];
  /** Mebibytes, of the command. */
  readonly memory: number[];
}

/** A database, its commands, and the same done by its own tool. */
interface Database {
  readonly tool: string;
  /** How the tool reads and writes plants, for the table. */
  readonly reader: string;
  readonly writer: string;
  /** What the command finds in `DATABASE_URL`. */
  readonly url: string;
  clear(): Promise<void>;
  /** Clears, and imports a CSV file. */
  importByTool(csv: string): Promise<number>;
  exportByTool(target: string): Promise<number>;
}

/** How the commands are measured. */
export interface DataCommandOptions {
  readonly plants: number;
  readonly rounds: number;
  /** Measures only beside this one, `sqlite3` or `psql`. */
  readonly tool?: string | undefined;
  readonly postgres: PostgresServer;
  readonly print: (...lines: string[]) => void;
}

/** Measures the commands, and prints a table. */
export async function measureDataCommands({
  plants,
  rounds,
  tool,
  postgres,
  print,
}: DataCommandOptions): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-data-'));
  try {
    const lines = join(folder, 'plants.ndjson');
    const csv = join(folder, 'plants.csv');
    writePlants(plants, lines, csv);
    const target = join(folder, 'output');
    const databases = [makeSqlite(folder), makePostgres(postgres)].filter(
      (database) => tool === undefined || database.tool === tool,
    );
    const pairs = databases.map((database) => scenesOf(database));
    for (let round = 0; round < rounds; round++) {
      for (const [importing, exporting] of pairs) {
        const { database } = importing;
        if (hasTool(database)) {
          importing.toolSeconds.push(await database.importByTool(csv));
          exporting.toolSeconds.push(await database.exportByTool(target));
        }
        await database.clear();
        await runCommand(importing, ['import', lines], target);
        await runCommand(exporting, ['export'], target);
      }
    }
    print('', `| ${plants.toLocaleString('en')} plants | plants/s | ratio | wanted | peak MiB |`);
    print('| --- | ---: | ---: | ---: | ---: |');
    for (const { name, database, seconds, toolSeconds, memory } of pairs.flat()) {
      const ratios = toolSeconds.map((taken, at) => taken / (seconds[at] ?? NaN));
      const ratio = hasTool(database) ? spreadOf(ratios).median.toFixed(2) : 'tool missing';
      const rate = Math.round(plants / spreadOf(seconds).median).toLocaleString('en');
      const peak = Math.ceil(Math.max(...memory));
      print(`| ${name} | ${rate} | ${ratio} | ≥ 0.2 | ${peak} (≤ 200) |`);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function scenesOf(database: Database): [importing: Scene, exporting: Scene] {
  const { tool, reader, writer } = database;
  const make = (name: string): Scene => ({
    name,
    database,
    seconds: [],
    toolSeconds: [],
    memory: [],
  });
  return [make(`import / ${tool} ${writer}`), make(`export / ${tool} ${reader}`)];
}

function makeSqlite(folder: string): Database {
  const file = join(folder, 'plants.db');
  const other = join(folder, 'other.db');
  const remove = (path: string): void => {
    for (const end of ['', '-wal', '-shm', '-journal']) rmSync(path + end, { force: true });
  };
  return {
    tool: 'sqlite3',
    reader: '-json',
    writer: '.import',
    url: `sqlite:${file}`,
    clear: () => {
      remove(file);
      return Promise.resolve();
    },
    importByTool: (csv) => {
      remove(other);
      return run('sqlite3', [
        other,
        'CREATE TABLE plants (id INTEGER PRIMARY KEY, name TEXT NOT NULL, tag TEXT) STRICT',
        'BEGIN',
        '.mode csv',
        `.import ${csv} plants`,
        'COMMIT',
      ]);
    },
    exportByTool: (target) => run('sqlite3', ['-json', other, QUERY], target),
  };
}

function makePostgres(server: PostgresServer): Database {
  const url = server.url();
  const execute = async (statements: string): Promise<void> => {
    const client = new Client(url);
    await client.connect();
    await client.query(statements);
    await client.end();
  };
  return {
    tool: 'psql',
    reader: '\\copy to',
    writer: '\\copy from',
    url,
    clear: () => execute('DROP TABLE IF EXISTS plants, plants_migrations; CHECKPOINT'),
    importByTool: async (csv) => {
      await execute(
        `DROP TABLE IF EXISTS other;
         CREATE TABLE other (id bigint PRIMARY KEY, name text NOT NULL, tag text); CHECKPOINT`,
      );
      return run('psql', [url, '-qc', `\\copy other from '${csv}' csv`]);
    },
    exportByTool: (target) =>
      run('psql', [url, '-qc', `\\copy (${QUERY.replace('plants', 'other')}) to '${target}'`]),
  };
}

const found = new Map<string, boolean>();

function hasTool({ tool }: Database): boolean {
  const isFound = found.get(tool) ?? spawnSync(tool, ['--version']).status === 0;
  found.set(tool, isFound);
  return isFound;
}

async function runCommand(scene: Scene, args: string[], target: string): Promise<void> {
  let memory = '';
  scene.seconds.push(
    await run(process.execPath, ['--import', REPORT_MEMORY, PROGRAM, ...args], target, {
      environment: { DATABASE_URL: scene.database.url },
      onReport: (text) => (memory += text),
    }),
  );
  scene.memory.push(Number(memory) / 1024);
}

/** Runs a program to its end, its output into a file, and returns how many seconds it took. */
async function run(
  program: string,
  args: readonly string[],
  target = '/dev/null',
  {
    environment = {},
    onReport = (): void => undefined,
  }: { environment?: NodeJS.ProcessEnv; onReport?: (text: string) => void } = {},
): Promise<number> {
  const output = openSync(target, 'w');
  const began = performance.now();
  const child = spawn(program, args, {
    env: { PATH: process.env.PATH, ...environment },
    stdio: ['ignore', output, 'pipe', 'pipe'],
  });
  let words = '';
  child.stderr?.on('data', (text) => (words += String(text)));
  child.stdio[3]?.on('data', (text) => {
    onReport(String(text));
  });
  const [code] = (await once(child, 'close')) as [number | null];
  const seconds = (performance.now() - began) / 1000;
  closeSync(output);
  if (code !== 0) throw new Error(`${program} ${args.join(' ')}: ${words}`);
  return seconds;
}

/** Writes the same plants as JSON Lines and as CSV. Their ids are in order, as an export has them. */
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

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      plants: { type: 'string', default: '1000000' },
      rounds: { type: 'string', default: '3' },
      tool: { type: 'string' },
    },
  });
  makeRunFolder();
  const postgres = await PostgresServer.start({});
  try {
    await measureDataCommands({
      plants: Number(values.plants),
      rounds: Number(values.rounds),
      tool: values.tool,
      postgres,
      print: (...texts) => {
        console.log(texts.join('\n'));
      },
    });
  } finally {
    await postgres.remove();
  }
}

if (require.main === module) void main();
