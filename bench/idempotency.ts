import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { Client } from 'pg';
import { PostgresServer } from '../test/support/postgres';
import makeRunFolder from '../test/support/run-folder';
import type { Contestant } from './contestants';
import { type Measurement, Server } from './server';
import { spreadOf } from './statistics';

/**
 * What an Idempotency-Key costs: creations without one, with one each, and replays, in short rounds by
 * turns. With `before`, the folder of a build of an earlier version, that one's creations too. A program
 * of its own: `node .bench/bench/idempotency.js --before ../plant-store-1.0`.
 */

/** Creations of the first turn, which replays repeat. */
const REPLAYED = 50_000;

/** Turns before the first that counts. */
const WARM_UPS = 4;

/** How the keys are measured. */
export interface IdempotencyOptions {
  readonly rounds: number;
  /** Seconds of a turn. */
  readonly duration: number;
  /** The folder of a version without keys, built; undefined for none. */
  readonly before?: string | undefined;
  readonly postgres: PostgresServer;
  readonly print: (...lines: string[]) => void;
}

interface Turn {
  readonly name: string;
  readonly wanted: string;
  readonly server: Server;
  readonly isKeyed: boolean;
  readonly isReplay: boolean;
  /** Where the server keeps its plants. */
  readonly database: string;
  readonly measurements: Measurement[];
}

/** Measures creations with and without keys on both stores, and prints a table for each. */
export async function measureIdempotency(options: IdempotencyOptions): Promise<void> {
  for (const store of ['sqlite', 'postgres'] as const) await measureOn(store, options);
}

async function measureOn(
  store: 'sqlite' | 'postgres',
  { rounds, duration, before, postgres, print }: IdempotencyOptions,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-keys-'));
  const servers: Server[] = [];
  let nextId = 1_000_000_000;

  async function makeTurn(
    name: string,
    wanted: string,
    program: string,
    { isKeyed = false, isReplay = false } = {},
  ): Promise<Turn> {
    const contestant: Contestant = { name, program, store, ours: true };
    const at = servers.length;
    const database =
      store === 'sqlite' ? join(folder, `${at}.db`) : await makeDatabase(postgres, `keys_${at}`);
    const server = await Server.start(contestant, database);
    servers.push(server);
    return { name, wanted, server, isKeyed, isReplay, database, measurements: [] };
  }

  async function play({ server, isKeyed, isReplay, measurements }: Turn): Promise<void> {
    nextId += 10_000_000;
    const measurement = await server.measure({
      connections: 64,
      duration,
      firstId: isReplay ? 1 : nextId,
      nameLength: 4,
      badPerMille: 0,
      isKeyed,
      ...(isReplay ? { cycle: REPLAYED } : {}),
    });
    if (measurement.wrong > 0) throw new Error(`${measurement.wrong} wrong answers`);
    measurements.push(measurement);
  }

  try {
    const plain = await makeTurn('without a key', '', 'dist/program/plant-store.js');
    const turns = [plain];
    if (before !== undefined) {
      const program = join(relative(process.cwd(), before), 'dist/main.js');
      turns.push(await makeTurn('an earlier version', '1', program));
    }
    turns.push(
      await makeTurn('with a key each', '≥ 0.8', 'dist/program/plant-store.js', { isKeyed: true }),
      await makeTurn('replays', '≥ 0.5', 'dist/program/plant-store.js', {
        isKeyed: true,
        isReplay: true,
      }),
    );
    const others = turns.slice(1);
    // The first turns of each only warm up; without them, the server that has had most turns is the one
    // whose code is compiled best. Those of the replays store what they repeat.
    for (const turn of turns) {
      for (let time = 0; time < WARM_UPS; time++) await play(turn);
      turn.measurements.length = 0;
    }
    for (let round = 0; round < rounds; round++) {
      for (const turn of others) {
        // Each next to a turn without a key.
        await play(plain);
        await play(turn);
      }
    }

    print('', `| ${store} | requests/s | ratio | wanted | CPU µs | ratio | bytes a plant |`);
    print('| --- | ---: | ---: | ---: | ---: | ---: | ---: |');
    for (const turn of turns) {
      const neighbours = plain.measurements.filter(
        (_, at) => turn === plain || at % others.length === others.indexOf(turn),
      );
      const ratio = (pick: (measurement: Measurement) => number): string =>
        spreadOf(
          turn.measurements.map((each, at) => pick(each) / pick(neighbours[at] ?? each)),
        ).median.toFixed(2);
      const of = (pick: (measurement: Measurement) => number): number =>
        spreadOf(turn.measurements.map(pick)).median;
      const bytes = turn.isReplay ? '' : (await bytesPerPlant(turn, store)).toFixed(1);
      print(
        `| ${turn.name} | ${Math.round(of((each) => each.rate)).toLocaleString('en')} ` +
          `| ${ratio((each) => each.rate)} | ${turn.wanted} | ${of((each) => each.cpu).toFixed(1)} ` +
          `| ${ratio((each) => each.cpu)} | ${bytes} |`,
      );
    }
  } finally {
    for (const server of servers) await server.stop();
    rmSync(folder, { recursive: true });
  }
}

async function makeDatabase(postgres: PostgresServer, name: string): Promise<string> {
  await query(postgres.url(), `DROP DATABASE IF EXISTS ${name}`);
  await query(postgres.url(), `CREATE DATABASE ${name}`);
  return postgres.url(name);
}

async function query(url: string, text: string): Promise<number> {
  const client = new Client(url);
  await client.connect();
  const { rows } = await client.query<{ value?: string }>(text);
  await client.end();
  return Number(rows[0]?.value);
}

/** Bytes of the table a plant, as the database stores it. */
async function bytesPerPlant({ database }: Turn, store: 'sqlite' | 'postgres'): Promise<number> {
  if (store === 'postgres') {
    const size = await query(database, `SELECT pg_total_relation_size('plants') AS value`);
    return size / (await query(database, 'SELECT count(*) AS value FROM plants'));
  }
  const { DatabaseSync } = await import('node:sqlite');
  const file = new DatabaseSync(database);
  file.exec('PRAGMA wal_checkpoint');
  const plants = Number(file.prepare('SELECT count(*) AS plants FROM plants').get()?.plants);
  file.close();
  return statSync(database).size / plants;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '7' },
      seconds: { type: 'string', default: '1' },
      before: { type: 'string' },
    },
  });
  makeRunFolder();
  const postgres = await PostgresServer.start({});
  try {
    await measureIdempotency({
      rounds: Number(values.rounds),
      duration: Number(values.seconds),
      before: values.before,
      postgres,
      print: (...lines) => {
        console.log(lines.join('\n'));
      },
    });
  } finally {
    await postgres.remove();
  }
}

if (require.main === module) void main();
