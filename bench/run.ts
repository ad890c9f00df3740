import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { parseArgs } from 'node:util';
import { Client } from 'pg';
import { type Contestant, contestants } from './contestants';
import { AUDIENCE, startIssuer } from './issuer';
import { PostgresServer } from '../test/support/postgres';
import makeRunFolder from '../test/support/run-folder';
import { drawChart } from './chart';
import { drawDashboard } from './chart-dashboard';
import { drawScenes } from './chart-scenes';
import { countCosts } from './costs';
import { measureDataCommands } from './data-commands';
import { measureIdempotency } from './idempotency';
import { type Measurement, Server } from './server';
import { ratiosOf, type Spread, spreadOf } from './statistics';

/**
 * The benchmark: every contestant side by side in one run, taking turns in short rounds, and then
 * scenes of our service. Prints the tables, and writes them with a picture to docs/performance.*.
 */
const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '9' },
    seconds: { type: 'string', default: '1.5' },
    /** Only contestants whose name contains this. */
    only: { type: 'string', default: '' },
    /** How many plants are exported and imported. */
    plants: { type: 'string', default: '1000000' },
    /** Leaves out the scenes. */
    'no-scenes': { type: 'boolean', default: false },
    /** Leaves docs/performance.* as they are. */
    'no-write': { type: 'boolean', default: false },
  },
});
const rounds = Number(options.rounds);
const duration = Number(options.seconds);

const PAGE = 'docs/performance.md';

const folder = mkdtempSync(join(tmpdir(), 'plant-store-bench-'));
let postgres: PostgresServer;
let nextId = 1_000_000_000;
let databases = 0;
const lines: string[] = [];

async function main(): Promise<void> {
  makeRunFolder();
  // Every commit is synced here too: the tests' server is faster, and forgets with the machine.
  postgres = await PostgresServer.start({});
  try {
    const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`;
    print(
      `Node.js ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'CPU'}, ${memory}, ` +
        `${new Date().toISOString().slice(0, 10)}; ${rounds} rounds of ${duration} s.`,
    );
    await compare();
    await printCosts();
    if (!options['no-scenes']) {
      await playScenes();
      await measureIdempotency({ rounds, duration, postgres, print });
      await measureDataCommands({ plants: Number(options.plants), rounds, postgres, print });
    }
    if (!options['no-write']) writeResults();
  } finally {
    await postgres.remove();
    rmSync(folder, { recursive: true });
  }
}

/** A database of its own for a contestant: a file or a URL. */
async function makeDatabase({ store }: Contestant): Promise<string> {
  const name = `plants_${++databases}`;
  if (store !== 'postgres') return join(folder, `${name}.db`);
  const client = new Client(postgres.url());
  await client.connect();
  await client.query(`CREATE DATABASE ${name}`);
  await client.end();
  return postgres.url(name);
}

/** How many plants a database holds, asked of the database itself. */
async function count({ store }: Contestant, database: string): Promise<number> {
  const query = 'SELECT count(*) AS plants FROM plants';
  if (store === 'sqlite') {
    const file = new DatabaseSync(database, { readOnly: true });
    const row = file.prepare(query).get();
    file.close();
    return Number(row?.plants);
  }
  const client = new Client(database);
  await client.connect();
  const { rows } = await client.query<{ plants: string }>(query);
  await client.end();
  return Number(rows[0]?.plants);
}

type Load = Parameters<Server['measure']>[0];

function load(connections: number, more: Partial<Load> = {}): Load {
  nextId += 10_000_000;
  return { connections, duration, firstId: nextId, nameLength: 4, badPerMille: 0, ...more };
}

interface Row {
  readonly contestant: Contestant;
  readonly database: string;
  readonly server: Server;
  readonly measurements: Measurement[];
}

async function compare(): Promise<void> {
  const rows: Row[] = [];
  for (const contestant of contestants.filter(({ name }) => name.includes(options.only))) {
    const database = await makeDatabase(contestant);
    const server = await Server.start(contestant, database);
    // The compiler has to come to rest.
    await server.measure({ ...load(64), duration: 5 });
    rows.push({ contestant, database, server, measurements: [] });
  }
  const warmUp = await Promise.all(
    rows.map(({ contestant, database }) =>
      contestant.store === 'none' ? Promise.resolve(0) : count(contestant, database),
    ),
  );

  for (let round = 0; round < rounds; round++) {
    for (const { server, measurements } of rows) measurements.push(await server.measure(load(64)));
  }

  print('', '| | requests/s | (least – most) | CPU µs | p50 ms | p99 ms | peak MiB | generator |');
  print('| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |');
  const bars: { name: string; rate: Spread; cpu: Spread }[] = [];
  for (const [at, { contestant, database, server, measurements }] of rows.entries()) {
    const of = (pick: (measurement: Measurement) => number): Spread =>
      spreadOf(measurements.map(pick));
    const [rate, cpu] = [of((each) => each.rate), of((each) => each.cpu)];
    bars.push({ name: contestant.name, rate, cpu });
    print(
      `| ${contestant.name} | ${rounded(rate.median)} | ${rounded(rate.least)} – ${rounded(rate.most)} ` +
        `| ${cpu.median.toFixed(1)} | ${of((each) => each.p50).median.toFixed(2)} ` +
        `| ${of((each) => each.p99).median.toFixed(2)} | ${Math.round(server.memory().peak)} ` +
        `| ${of((each) => each.ownCpu).median.toFixed(2)} |`,
    );

    const wrong = sum(measurements.map((each) => each.wrong));
    if (wrong > 0) throw new Error(`${contestant.name}: ${wrong} wrong answers`);
    if (contestant.store === 'none') continue;
    const stored = (await count(contestant, database)) - (warmUp[at] ?? 0);
    const created = sum(measurements.map((each) => each.created));
    if (stored !== created)
      throw new Error(`${contestant.name}: ${created} created, ${stored} stored`);
  }
  for (const { server } of rows) await server.stop();
  printRatios(new Map(rows.map((row) => [row.contestant.name, row.measurements])));
  if (!options['no-write']) writeFileSync('docs/performance.svg', drawChart(bars));
}

/** A ratio of two measurements of the same rounds, and what the project set out for. */
interface Comparison {
  readonly of: 'rate' | 'cpu' | 'p50';
  readonly ours: string;
  readonly theirs: string;
  readonly wanted?: string;
}

const words = { rate: 'requests/s', cpu: 'CPU a request', p50: 'p50' };

/** Prints the median of the ratios of neighbouring rounds, and the least and the most of them. */
function printRatios(
  measured: ReadonlyMap<string, readonly Measurement[]>,
  comparisons: readonly Comparison[] = fields,
): void {
  print('', '| ratio of neighbouring rounds | median | (least – most) | wanted |');
  print('| --- | ---: | ---: | ---: |');
  for (const { of, ours, theirs, wanted = '' } of comparisons) {
    const [a, b] = [measured.get(ours), measured.get(theirs)];
    if (!a || !b) continue;
    const { median, least, most } = ratiosOf(
      a.map((each) => each[of]),
      b.map((each) => each[of]),
    );
    print(
      `| ${words[of]}: ${ours} / ${theirs} | ${median.toFixed(2)} ` +
        `| ${least.toFixed(2)} – ${most.toFixed(2)} | ${wanted} |`,
    );
  }
}

const [none, sqlite, postgresql] = ['no store', 'SQLite', 'PostgreSQL'].map(
  (store) => `Plant Store, ${store}`,
) as [string, string, string];

/** How the contestants compare. */
const fields: readonly Comparison[] = [
  { of: 'cpu', ours: none, theirs: 'Fastify, no store', wanted: '≤ 1.6' },
  { of: 'cpu', ours: sqlite, theirs: 'Fastify, no store', wanted: '≤ 1.7' },
  { of: 'rate', ours: sqlite, theirs: none, wanted: '≥ 0.9' },
  { of: 'rate', ours: postgresql, theirs: none, wanted: '≥ 0.9' },
  { of: 'rate', ours: sqlite, theirs: 'Fastify, SQLite, a commit a request' },
  { of: 'rate', ours: sqlite, theirs: 'Nest + TypeORM insert(), SQLite, tuned' },
  { of: 'rate', ours: sqlite, theirs: 'Nest + TypeORM save(), SQLite' },
  { of: 'rate', ours: postgresql, theirs: 'Fastify, PostgreSQL, an insert a request' },
  { of: 'rate', ours: postgresql, theirs: 'Nest + TypeORM insert(), PostgreSQL' },
  { of: 'rate', ours: postgresql, theirs: 'Nest + TypeORM save(), PostgreSQL' },
];

/** Prints what a creation costs that does not vary with the machine. */
async function printCosts(): Promise<void> {
  print('', '| a request | instructions | bytes | system calls |', '| --- | ---: | ---: | ---: |');
  const counted = ['Fastify, no store', none, sqlite].filter((name) => name.includes(options.only));
  for (const contestant of contestants.filter(({ name }) => counted.includes(name))) {
    const server = await Server.start(contestant, await makeDatabase(contestant));
    const measure = (): Promise<Measurement> => server.measure(load(64));
    await server.measure({ ...load(64), duration: 10 });
    const { instructions, bytes, calls } = await countCosts(server, folder, measure);
    const cell = (count: number | undefined): string => (count ? rounded(count) : '?');
    print(
      `| ${contestant.name} | ${cell(instructions)} | ${cell(bytes)} | ${calls?.toFixed(2) ?? '?'} |`,
    );
    await server.stop();
  }
}

/** Our service on SQLite under other conditions, each measured in turn with the plain one. */
async function playScenes(): Promise<void> {
  const [contestant] = contestants.filter(({ name }) => name === 'Plant Store, SQLite');
  if (!contestant) return;
  const { issuer, token, stop } = await startIssuer();
  const withIssuer: Contestant = {
    ...contestant,
    environment: { AUTH_ISSUER: issuer, AUTH_AUDIENCE: AUDIENCE },
  };
  const server = await Server.start(withIssuer, await makeDatabase(contestant));
  const rest = server.memory().now;
  const full = await Server.start(contestant, await makeFullDatabase(contestant, 10_000_000));
  const [http, fastify] = await Promise.all(
    ['node:http, echo', 'Fastify, SQLite, a commit a request'].map(async (name) => {
      const [other] = contestants.filter((each) => each.name === name);
      if (!other) throw new Error(`no ${name}`);
      return Server.start(other, await makeDatabase(other));
    }),
  );
  if (!http || !fastify) return;

  interface Scene {
    readonly name: string;
    readonly server: Server;
    readonly load: () => Load;
    readonly token?: string;
  }
  const measurements = new Map<Scene, Measurement[]>();
  async function play(...scenes: Scene[]): Promise<void> {
    for (const scene of scenes) measurements.set(scene, []);
    for (let round = 0; round < rounds; round++) {
      for (const scene of scenes) {
        const measurement = await scene.server.measure(scene.load(), scene.token);
        if (measurement.wrong > 0)
          throw new Error(`${scene.name}: ${measurement.wrong} wrong answers`);
        measurements.get(scene)?.push(measurement);
      }
    }
  }

  await play(
    { name: '1 connection', server, load: () => load(1) },
    { name: '1, a commit a request in Fastify', server: fastify, load: () => load(1) },
    { name: '16 connections', server, load: () => load(16) },
    { name: '64 connections', server, load: () => load(64) },
    { name: '256 connections', server, load: () => load(256) },
    { name: '1,024 connections', server, load: () => load(1024) },
    { name: '64, node:http that echoes', server: http, load: () => load(64) },
    { name: '1,024, node:http that echoes', server: http, load: () => load(1024) },
    { name: '64, in a store of 10 million plants', server: full, load: () => load(64) },
    { name: '64, 1% bad requests', server, load: () => load(64, { badPerMille: 10 }) },
    { name: '64, callers with a JWT', server, load: () => load(64), token },
  );
  // Apart from the others, which would have to share the disk with half a gigabyte a round.
  const large = await Server.start(contestant, await makeDatabase(contestant));
  await play({
    name: '64, bodies of 64 KiB',
    server: large,
    load: () => load(64, { nameLength: 65_536 }),
  });

  print(
    '',
    '| scene, SQLite | requests/s | CPU µs | p50 ms | p99 ms |',
    '| --- | ---: | ---: | ---: | ---: |',
  );
  for (const [{ name }, measured] of measurements) {
    const of = (pick: (measurement: Measurement) => number): number =>
      spreadOf(measured.map(pick)).median;
    print(
      `| ${name} | ${rounded(of((each) => each.rate))} | ${of((each) => each.cpu).toFixed(1)} ` +
        `| ${of((each) => each.p50).toFixed(2)} | ${of((each) => each.p99).toFixed(2)} |`,
    );
  }
  const byName = new Map([...measurements].map(([{ name }, measured]) => [name, measured]));
  printRatios(byName, [
    {
      of: 'p50',
      ours: '1 connection',
      theirs: '1, a commit a request in Fastify',
      wanted: '≤ 1.3',
    },
    { of: 'rate', ours: '1,024 connections', theirs: '64 connections', wanted: '≥ 0.95 of next' },
    { of: 'rate', ours: '1,024, node:http that echoes', theirs: '64, node:http that echoes' },
    {
      of: 'rate',
      ours: '64, in a store of 10 million plants',
      theirs: '64 connections',
      wanted: '≥ 0.9',
    },
  ]);
  if (!options['no-write']) {
    drawScenes(measurements);
    await drawDashboard();
  }
  const startUps = [];
  for (let round = 0; round < rounds; round++) {
    const fresh = await Server.start(contestant, await makeDatabase(contestant));
    startUps.push(fresh.startUp);
    await fresh.stop();
  }
  print('', `From start to first answer: ${Math.round(spreadOf(startUps).median)} ms.`);
  print(
    `Resident memory: ${Math.round(rest)} MiB at rest, ${Math.round(server.memory().peak)} MiB at most, ` +
      `with bodies of 64 KiB ${Math.round(large.memory().peak)} MiB.`,
  );
  for (const each of [server, full, large, http, fastify]) await each.stop();
  stop();
}

/** A SQLite file that holds plants already, on both sides of the ids that are to come. */
async function makeFullDatabase(contestant: Contestant, plants: number): Promise<string> {
  const database = await makeDatabase(contestant);
  await (await Server.start(contestant, database)).stop();
  const file = new DatabaseSync(database);
  file.exec(`INSERT INTO plants (id, name, tag)
    WITH RECURSIVE ids(id) AS (VALUES (1) UNION ALL SELECT id + 1 FROM ids WHERE id < ${plants})
    SELECT iif(id % 2, -1, 1) * (1000000000000000 + id * 7919), 'Fern ' || id, 'shade' FROM ids`);
  file.close();
  return database;
}

/** Puts what was printed into docs/performance.md. */
function writeResults(): void {
  const page = readFileSync(PAGE, 'utf8');
  const results = /(?<=<!-- results -->\n).*(?=<!-- end of results -->)/s;
  writeFileSync(
    PAGE,
    page.replace(results, () => `\n${lines.join('\n')}\n\n`),
  );
}

function print(...texts: string[]): void {
  for (const text of texts) {
    lines.push(text);
    console.log(text);
  }
}

function rounded(number: number): string {
  return Math.round(number).toLocaleString('en');
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

void main();
