import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { parseArgs } from 'node:util';
import { PostgresServer } from '../test/support/postgres';
import { makeRunFolder } from '../test/support/run-folder';
import { drawBars } from './chart';
import {
  batchingFastify,
  type Contestant,
  fastify,
  nest,
  plantStore,
  plantStoreIn,
  typeOrm,
} from './contestants';
import { AUDIENCE, startIssuer } from './issuer';
import { formatCsv, formatTable, type Result } from './report';
import { type Load, Server } from './server';
import {
  type Figure,
  type Measured,
  ratioOf,
  type Subject,
  takeTurns,
  type Turn,
} from './statistics';
import { dataCommands, hasTool, pgbench } from './tools';

/**
 * The benchmark: groups of subjects that run in alternating turns. Prints tables, writes them into
 * docs/performance.md, all turns into docs/performance.csv, and draws docs/performance.svg.
 */
const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    /** The duration of a turn in whole seconds. */
    seconds: { type: 'string', default: '10' },
    /** Only groups whose name contains this. */
    only: { type: 'string', default: '' },
    /** The number of plants to export and import. */
    plants: { type: 'string', default: '1000000' },
    /** The number of plants in a full store. */
    full: { type: 'string', default: '10000000' },
    /** Does not write docs/performance.*. */
    'no-write': { type: 'boolean', default: false },
    /**
     * The folder of a built older version. Only compares create requests with it, and exits with code 1 if
     * the rate is below {@link MIN_RATIO} of the older one.
     */
    against: { type: 'string', default: '' },
  },
});
const rounds = Number(options.rounds);
const duration = Number(options.seconds);

const PAGE = 'docs/performance.md';

/** How often servers are started to compare CPU time, because V8 optimizes differently each time. */
const STARTS = 3;

/** The number of ids that the first turn of replays creates and later turns replay. */
const REPLAYED_IDS = 50_000;

/** The rate of create requests, as a fraction of that of an older version, below which a change is too slow. */
const MIN_RATIO = 0.9;

const PEER_FIGURES: readonly Figure[] = ['rate', 'p50', 'p99'];

/** The coordinator of a Citus cluster with an empty, distributed table `plants`; for this run alone. */
const { CITUS_URL } = process.env;

let folder: string;
let postgres: PostgresServer;
let databases = 0;

type Group = Omit<Result, 'group' | 'subjects'> & {
  readonly measure: () => Promise<readonly Measured[]>;
};

/** The comparisons, in the order of the page. */
const groups: Readonly<Record<string, Group>> = {
  SQLite: {
    figures: PEER_FIGURES,
    kind: 'peers',
    measure: () =>
      race(
        [plantStore.sqlite, fastify.sqlite, batchingFastify.sqlite],
        [1, 64, 1024],
        typeOrm('sqlite'),
      ),
  },

  PostgreSQL: {
    figures: PEER_FIGURES,
    kind: 'peers',
    async measure() {
      const reference = `${plantStore.postgres.name}, 64 connections`;
      const database = await makePostgresDatabase();
      const tools = hasTool('pgbench')
        ? [await pgbench(postgres, database, folder, duration, reference)]
        : [];
      const others = [batchingFastify.postgres, ...typeOrm('postgres')];
      return race([plantStore.postgres, fastify.postgres], [1, 64, 1024], others, tools);
    },
  },

  'Growth on PostgreSQL': {
    figures: PEER_FIGURES,
    kind: 'variants',
    async measure() {
      const clusters = [1, 2, 4].map((count) => ({ count, url: '', name: `${count} instances` }));
      const servers: Server[] = [];
      const subjects: Subject[] = [];
      for (const { count, name } of clusters) {
        const url = postgres.url(await makePostgresDatabase());
        subjects.push(await startInstances(count, url, name.replace('1 instances', '1 instance')));
      }
      if (CITUS_URL !== undefined) {
        subjects.push(await startInstances(1, CITUS_URL, '1 instance, Citus with three workers'));
      }
      const measured = await takeTurns(subjects, rounds);
      await stop(...servers);
      return measured;

      async function startInstances(count: number, url: string, name: string): Promise<Subject> {
        const instances: Server[] = [];
        for (let at = 0; at < count; at++) {
          instances.push(await Server.start(plantStore.postgres, url));
        }
        servers.push(...instances);
        for (const server of instances) await server.warmUp();
        return { name, turn: () => measureTogether(instances) };
      }
    },
  },

  'Conditions on SQLite': {
    figures: PEER_FIGURES,
    kind: 'variants',
    async measure() {
      const { issuer, token, stop: stopIssuer } = await startIssuer();
      const environment = { AUTH_ISSUER: issuer, AUTH_AUDIENCE: AUDIENCE };
      const ours = await start({ ...plantStore.sqlite, environment });
      const full = await Server.start(plantStore.sqlite, await makeFullDatabase());
      await full.warmUp();
      const plants = Number(options.full).toLocaleString('en');
      const measured = await takeTurns(
        [
          ...keyed(ours),
          underLoad(ours, { ...connections(64), token }, 'with a JWT'),
          underLoad(full, connections(64), `in a store of ${plants} plants`),
        ],
        rounds,
      );
      await stop(ours, full);
      stopIssuer();
      return measured;
    },
  },

  'Idempotency keys on PostgreSQL': {
    figures: PEER_FIGURES,
    kind: 'variants',
    async measure() {
      const ours = await start(plantStore.postgres);
      const measured = await takeTurns(keyed(ours), rounds);
      await stop(ours);
      return measured;
    },
  },

  'Processor time, with the fastest peer': {
    figures: ['cpu'],
    kind: 'peers',
    measure: () => loadTogether([plantStore.sqlite, batchingFastify.sqlite]),
  },

  'Processor time, with Nest that stores nothing': {
    figures: ['cpu'],
    kind: 'peers',
    measure: () => loadTogether([plantStore.sqlite, nest]),
  },

  'Start and memory on SQLite': {
    figures: ['start', 'rest', 'peak'],
    kind: 'peers',
    measure: () =>
      takeTurns(
        [plantStore.sqlite, fastify.sqlite].map((contestant) => ({
          name: contestant.name,
          turn: async (): Promise<Turn> => {
            const server = await Server.start(contestant, newFile());
            const rest = server.memory().now;
            await server.measure(connections(64));
            const { peak } = server.memory();
            await server.stop();
            return { start: server.startupMs, rest, peak };
          },
        })),
        rounds,
      ),
  },

  'Import and export': {
    figures: ['rate', 'peak'],
    kind: 'peers',
    measure: () => takeTurns(dataCommands(Number(options.plants), folder, postgres), rounds),
  },
};

async function main(): Promise<void> {
  // Nothing else holds the process while PostgreSQL starts: its process is detached, so that Jest can exit.
  const alive = setInterval(() => undefined, 60_000);
  makeRunFolder();
  folder = mkdtempSync(join(tmpdir(), 'bench-'));
  // Unlike the tests' server, this one syncs every commit.
  postgres = await PostgresServer.start({});
  try {
    if (options.against === '') await compareAll();
    else await compareWithOlder(options.against);
  } finally {
    await postgres.remove();
    clearInterval(alive);
  }
}

async function compareAll(): Promise<void> {
  const results: Result[] = [];
  for (const [group, { measure, ...columns }] of Object.entries(groups)) {
    if (!group.includes(options.only)) continue;
    console.error(`${new Date().toISOString().slice(11, 19)} ${group}`);
    const result = { group, ...columns, subjects: await measure() };
    console.log(`\n### ${group}\n\n${formatTable(result)}`);
    results.push(result);
  }
  if (!options['no-write']) writeResults(results);
}

/** Compares the rate of create requests with that of an older version, both loaded at the same time. */
async function compareWithOlder(older: string): Promise<void> {
  const contestants = [plantStore.sqlite, plantStoreIn(older, 'sqlite', `Plant Store in ${older}`)];
  const [ours, theirs] = await loadTogether(contestants);
  if (!ours || !theirs) return;
  const subjects = [ours, theirs];
  console.log(formatTable({ group: '', figures: ['rate', 'cpu'], kind: 'peers', subjects }));
  if (ratioOf(ours, theirs, 'rate').median >= MIN_RATIO) return;
  console.error(`The rate of create requests is below ${MIN_RATIO} of that in ${older}.`);
  process.exitCode = 1;
}

/**
 * Starts contestants, and runs them and tools in turns. Then compares the number of plants in each store
 * with the number of requests that got 200.
 *
 * @param contestants measured at each number of connections
 * @param counts numbers of connections
 * @param others measured at 64 connections
 */
async function race(
  contestants: readonly Contestant[],
  counts: readonly number[],
  others: readonly Contestant[],
  tools: readonly Subject[] = [],
): Promise<readonly Measured[]> {
  const servers: Server[] = [];
  for (const contestant of [...contestants, ...others]) servers.push(await start(contestant));
  const [ours] = servers;
  const subjects = servers.flatMap((server, at) =>
    (at < contestants.length ? counts : [64]).map((count) => ({
      ...underLoad(server, connections(count), nameOf(server, count)),
      reference: ours && nameOf(ours, count),
    })),
  );
  const measured = await takeTurns([...subjects, ...tools], rounds);
  for (const server of servers) {
    const stored = await countPlants(server);
    if (stored !== server.created) {
      throw new Error(`${server.contestant.name}: ${server.created} created, ${stored} stored`);
    }
  }
  await stop(...servers);
  return measured;
}

function nameOf({ contestant }: Server, count: number): string {
  return `${contestant.name}, ${count} connection${count === 1 ? '' : 's'}`;
}

/**
 * Starts two contestants and loads both at the same time. On a shared machine, the CPU time of one build
 * varies by a sixth from turn to turn, but hardly between two that run at the same time.
 */
async function loadTogether(contestants: readonly Contestant[]): Promise<readonly Measured[]> {
  const measured = contestants.map(({ name }) => ({ name, turns: [] as Turn[] }));
  for (let time = 0; time < STARTS; time++) {
    const servers = await Promise.all(
      contestants.map((contestant) => Server.start(contestant, newFile())),
    );
    await Promise.all(servers.map((server) => server.warmUp()));
    for (let round = 0; round < rounds; round++) {
      const turns = await Promise.all(servers.map((server) => server.measure(connections(64))));
      for (const [at, turn] of turns.entries()) measured[at]?.turns.push(turn);
    }
    await stop(...servers);
  }
  return measured;
}

/** Loads several instances at the same time, with 64 connections in total. */
async function measureTogether(instances: readonly Server[]): Promise<Turn> {
  const load = connections(64 / instances.length);
  const turns = await Promise.all(instances.map((instance) => instance.measure(load)));
  const valuesOf = (figure: Figure): number[] => turns.map((turn) => turn[figure] ?? NaN);
  return {
    rate: valuesOf('rate').reduce((sum, rate) => sum + rate),
    p50: Math.max(...valuesOf('p50')),
    p99: Math.max(...valuesOf('p99')),
  };
}

function underLoad(server: Server, load: Load, name: string): Subject {
  return { name, turn: () => server.measure(load) };
}

/** Creates subjects for requests without a key, with a new key each, and for replays. */
function keyed(server: Server): Subject[] {
  const withKeys = { ...connections(64), isKeyed: true };
  return [
    underLoad(server, connections(64), 'without a key'),
    underLoad(server, withKeys, 'with a key each'),
    underLoad(server, { ...withKeys, cycle: REPLAYED_IDS }, 'replays'),
  ];
}

function connections(count: number): Load {
  return { connections: count, duration };
}

/** Starts a contestant on a new database, and warms it up. */
async function start(contestant: Contestant): Promise<Server> {
  const isPostgres = contestant.store === 'postgres';
  const database = isPostgres ? postgres.url(await makePostgresDatabase()) : newFile();
  const server = await Server.start(contestant, database);
  await server.warmUp();
  return server;
}

async function stop(...servers: Server[]): Promise<void> {
  for (const server of servers) await server.stop();
}

function newFile(): string {
  return join(folder, `plants_${++databases}.db`);
}

async function makePostgresDatabase(): Promise<string> {
  const name = `plants_${++databases}`;
  await postgres.execute(`CREATE DATABASE ${name}`);
  return name;
}

/** Counts the plants of a server in its database. */
async function countPlants({ contestant, database }: Server): Promise<number> {
  const query = 'SELECT count(*) AS plants FROM plants';
  if (contestant.store === 'postgres') {
    const [row] = await postgres.execute(query, new URL(database).pathname.slice(1));
    return Number(row?.plants);
  }
  const file = new DatabaseSync(database, { readOnly: true });
  const row = file.prepare(query).get();
  file.close();
  return Number(row?.plants);
}

/** Creates a SQLite file that already contains plants, with ids on both sides of those to be created. */
async function makeFullDatabase(): Promise<string> {
  const server = await Server.start(plantStore.sqlite, newFile());
  await server.stop();
  const file = new DatabaseSync(server.database);
  file.exec(`INSERT INTO plants (id, name, tag)
    WITH RECURSIVE ids(id) AS (VALUES (1) UNION ALL SELECT id + 1 FROM ids WHERE id < ${options.full})
    SELECT iif(id % 2, -1, 1) * (1000000000000000 + id * 7919), 'Fern ' || id, 'shade' FROM ids`);
  file.close();
  return server.database;
}

/** Writes the tables into the page, all turns into the file next to it, and draws the chart. */
function writeResults(results: readonly Result[]): void {
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`;
  const run =
    `Node.js ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'CPU'}, ${memory}, ` +
    `${new Date().toISOString().slice(0, 10)}; ${rounds} rounds with turns of ${duration} s.`;
  const tables = results.map((result) => `### ${result.group}\n\n${formatTable(result)}`);
  const page = readFileSync(PAGE, 'utf8');
  const place = /(?<=<!-- results -->\n).*(?=<!-- end of results -->)/s;
  const text = [run, ...tables].join('\n\n');
  writeFileSync(
    PAGE,
    page.replace(place, () => `\n${text}\n\n`),
  );
  writeFileSync('docs/performance.csv', formatCsv(results));
  const drawn = results.filter(({ group }) => ['SQLite', 'PostgreSQL'].includes(group));
  writeFileSync('docs/performance.svg', drawBars(drawn));
}

void main();
