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
  nodeHttp,
  plantStore,
  typeOrm,
} from './contestants';
import { AUDIENCE, startIssuer } from './issuer';
import { type Load, Server } from './server';
import { compare, type Comparison, type Figure, FIGURES, takeTurns } from './statistics';
import type { Subject, Turn, Turns } from './statistics';
import { dataCommands, hasTool, pgbench, sqliteBatches } from './tools';

/**
 * The benchmark: groups of subjects that run in short alternating turns. Prints tables of ratios, writes
 * them into docs/performance.md, and draws docs/performance.svg.
 */
const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    /** The duration of a turn in whole seconds. */
    seconds: { type: 'string', default: '2' },
    /** Only groups whose name contains this. */
    only: { type: 'string', default: '' },
    /** The number of plants to export and import. */
    plants: { type: 'string', default: '1000000' },
    /** The number of plants in a full store. */
    full: { type: 'string', default: '10000000' },
    /** Does not write docs/performance.*. */
    'no-write': { type: 'boolean', default: false },
  },
});
const rounds = Number(options.rounds);
const duration = Number(options.seconds);

const PAGE = 'docs/performance.md';
const OURS = plantStore.none.name;

/** The number of turns until V8 has optimized the code. */
const WARM_UP_TURNS = 2;
/** The number of requests until then, for comparisons of CPU time. */
const WARM_UP_REQUESTS = 60_000;
/** How often servers are started for such a comparison, because V8 optimizes differently each time. */
const STARTS = 3;

/** The number of ids that the first turn of replays creates and later turns replay. */
const REPLAYED_IDS = 50_000;

let folder: string;
let postgres: PostgresServer;
let databases = 0;
const comparisons: (Comparison & { readonly group: string })[] = [];
const leftOut: string[] = [];

/** The comparisons, in the order of the page. */
const groups: Readonly<Record<string, (group: string) => Promise<void>>> = {
  'no store': async (group) => {
    const turns = await race([plantStore.none, nest, nodeHttp]);
    add(group, turns, 'rate', OURS, nest.name);
    add(group, turns, 'rate', OURS, nodeHttp.name);
  },

  'processor time': async (group) => {
    const onSqlite = { ...plantStore.sqlite, name: 'Plant Store on SQLite' };
    const logged = {
      ...onSqlite,
      name: `${onSqlite.name}, with ACCESS_LOG`,
      environment: { ACCESS_LOG: 'true', LOG_LEVEL: 'info' },
    };
    const none = { ...plantStore.none, name: 'Plant Store, no store' };
    for (const [ours, theirs, target] of [
      [onSqlite, nest, '≤ 0.9'],
      [logged, nest],
      [none, nest],
      [onSqlite, batchingFastify.sqlite],
      [nest, fastify.none],
    ] as const) {
      add(group, await loadTogether([ours, theirs]), 'cpu', ours.name, theirs.name, target);
    }
  },

  SQLite: async (group) => {
    const none = { ...plantStore.none, name: 'Plant Store, no store' };
    const others = [fastify.sqlite, batchingFastify.sqlite, ...typeOrm('sqlite')];
    const tools = [sqliteBatches(folder, duration)];
    const turns = await race([plantStore.sqlite, ...others, none], tools);
    for (const { name } of [none, ...others, ...tools]) add(group, turns, 'rate', OURS, name);
  },

  PostgreSQL: async (group) => {
    const none = { ...plantStore.none, name: 'Plant Store, no store' };
    const others = [fastify.postgres, batchingFastify.postgres, ...typeOrm('postgres')];
    const tools = hasTool('pgbench')
      ? await pgbench(postgres, await makePostgresDatabase(), folder, duration)
      : [];
    if (tools.length === 0) leftOut.push('pgbench is not installed on this machine.');
    const turns = await race([plantStore.postgres, ...others, none], tools);
    for (const { name } of [none, ...others, ...tools]) add(group, turns, 'rate', OURS, name);
  },

  'connections, SQLite': async (group) => {
    const [ours, bare, http] = [
      await start(plantStore.sqlite),
      await start(fastify.sqlite),
      await start(nodeHttp),
    ];
    const loads = [1, 64, 256, 1024].map((count) =>
      underLoad(ours, connections(count), `${count} at once`),
    );
    const others = [64, 1024].map((count) =>
      underLoad(http, connections(count), `${nodeHttp.name}, ${count} at once`),
    );
    const alone = underLoad(bare, connections(1), `${bare.contestant.name}, 1 at once`);
    const turns = await takeTurns([alone, ...loads, ...others], rounds);
    add(group, turns, 'p50', '1 at once', alone.name);
    for (const count of [1, 256, 1024]) {
      add(group, turns, 'rate', `${count} at once`, '64 at once');
    }
    add(group, turns, 'rate', others[1]?.name ?? '', others[0]?.name ?? '');
    await stop(ours, bare, http);
  },

  'conditions, SQLite': async (group) => {
    const { issuer, token, stop: stopIssuer } = await startIssuer();
    const environment = { AUTH_ISSUER: issuer, AUTH_AUDIENCE: AUDIENCE };
    const ours = await start({ ...plantStore.sqlite, environment });
    const full = await Server.start(plantStore.sqlite, await makeFullDatabase());
    const [plain, ...others] = [
      ...creations(ours),
      underLoad(ours, { ...connections(64), token }, 'with a JWT'),
      underLoad(full, connections(64), `in a store of ${whole(Number(options.full))}`),
    ];
    const turns = await takeTurns([plain, ...others], rounds);
    const targets = ['≥ 0.8', '≥ 0.5'];
    for (const [at, { name }] of others.entries()) {
      add(group, turns, 'rate', name, plain.name, targets[at]);
    }
    await stop(ours, full);
    stopIssuer();
  },

  'keys, PostgreSQL': async (group) => {
    const ours = await start(plantStore.postgres);
    const [plain, keyed, replays] = creations(ours);
    const turns = await takeTurns([plain, keyed, replays], rounds);
    add(group, turns, 'rate', keyed.name, plain.name, '≥ 0.8');
    add(group, turns, 'rate', replays.name, plain.name, '≥ 0.5');
    await stop(ours);
  },

  'start and memory': async (group) => {
    const subjects = [plantStore.sqlite, fastify.sqlite].map((contestant) => ({
      name: contestant.name,
      turn: async (): Promise<Turn> => {
        const server = await start(contestant);
        const rest = server.memory().now;
        await server.measure({ ...connections(64), duration: 3 * duration });
        const { peak } = server.memory();
        await server.stop();
        return { start: server.startupMs, rest, peak };
      },
    }));
    const turns = await takeTurns(subjects, rounds);
    const bare = fastify.sqlite.name;
    add(group, turns, 'start', OURS, bare);
    add(group, turns, 'rest', OURS, bare, '≤ 150 MiB');
    add(group, turns, 'peak', OURS, bare, '≤ 240 MiB');
  },

  'import and export': async (group) => {
    const pairs = dataCommands(Number(options.plants), folder, postgres);
    const turns = await takeTurns(pairs.flat(), rounds);
    for (const [command, tool] of pairs) {
      add(group, turns, 'plants', command.name, tool.name);
      add(group, turns, 'peak', command.name, tool.name);
    }
    const missing = ['sqlite3', 'psql'].filter((name) => !hasTool(name));
    if (missing.length > 0) leftOut.push(`Not installed on this machine: ${missing.join(', ')}.`);
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
    for (const [name, measure] of Object.entries(groups)) {
      if (!name.includes(options.only)) continue;
      console.error(`${new Date().toISOString().slice(11, 19)} ${name}`);
      await measure(name);
    }
    const results = formatResults();
    console.log(results);
    if (!options['no-write']) writeResults(results);
  } finally {
    await postgres.remove();
    clearInterval(alive);
  }
}

/** Starts contestants, runs them and tools in turns at 64 connections, and compares the stored plants with the created ones. */
async function race(contestants: Contestant[], tools: Subject[] = []): Promise<Turns> {
  const servers: Server[] = [];
  for (const contestant of contestants) servers.push(await start(contestant));
  const subjects = servers.map((server) => underLoad(server, connections(64)));
  const turns = await takeTurns([...subjects, ...tools], rounds);
  for (const server of servers) {
    const stored = await countPlants(server);
    if (stored !== server.created) {
      throw new Error(`${server.contestant.name}: ${server.created} created, ${stored} stored`);
    }
  }
  await stop(...servers);
  return turns;
}

/**
 * Starts two contestants and loads both at the same time. On a shared machine, the CPU time of one build
 * varies by a sixth from turn to turn, but hardly between two that run at the same time.
 */
async function loadTogether(contestants: readonly Contestant[]): Promise<Turns> {
  const turns = new Map<string, Turn[]>(contestants.map(({ name }) => [name, []]));
  for (let time = 0; time < STARTS; time++) {
    const servers = await Promise.all(contestants.map(start));
    const warmUp = { ...connections(64), duration: 60, requests: WARM_UP_REQUESTS };
    await Promise.all(servers.map((server) => server.measure(warmUp)));
    for (let round = 0; round < rounds; round++) {
      await Promise.all(
        servers.map(async (server) => {
          turns.get(server.contestant.name)?.push(await server.measure(connections(64)));
        }),
      );
    }
    await stop(...servers);
  }
  return turns;
}

function underLoad(server: Server, load: Load, name = server.contestant.name): Subject {
  return { name, warmUps: WARM_UP_TURNS, turn: () => server.measure(load) };
}

/** Creates subjects for requests without a key, with a new key each, and for replays. */
function creations(server: Server): [plain: Subject, keyed: Subject, replays: Subject] {
  const keyed = { ...connections(64), isKeyed: true };
  return [
    underLoad(server, connections(64), 'without a key'),
    underLoad(server, keyed, 'with a key each'),
    underLoad(server, { ...keyed, cycle: REPLAYED_IDS }, 'replays'),
  ];
}

function connections(count: number): Load {
  return { connections: count, duration };
}

/** Starts a contestant on a new database. */
async function start(contestant: Contestant): Promise<Server> {
  const isPostgres = contestant.store === 'postgres';
  return Server.start(
    contestant,
    isPostgres ? postgres.url(await makePostgresDatabase()) : newFile(),
  );
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
async function countPlants({ contestant, database, created }: Server): Promise<number> {
  if (contestant.store === 'none') return created;
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
  const server = await start(plantStore.sqlite);
  await server.stop();
  const file = new DatabaseSync(server.database);
  file.exec(`INSERT INTO plants (id, name, tag)
    WITH RECURSIVE ids(id) AS (VALUES (1) UNION ALL SELECT id + 1 FROM ids WHERE id < ${options.full})
    SELECT iif(id % 2, -1, 1) * (1000000000000000 + id * 7919), 'Fern ' || id, 'shade' FROM ids`);
  file.close();
  return server.database;
}

function add(group: string, ...args: Parameters<typeof compare>): void {
  const comparison = compare(...args);
  if (comparison) comparisons.push({ group, ...comparison });
}

function formatResults(): string {
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`;
  const run =
    `Node.js ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'CPU'}, ${memory}, ` +
    `${new Date().toISOString().slice(0, 10)}; ${rounds} rounds of ${duration} s. ${leftOut.join(' ')}`;
  const sections = [...Map.groupBy(comparisons, ({ group }) => group)].flatMap(
    ([group, members]) => [`### ${group}`, ...formatTables(members)],
  );
  return [run.trim(), ...sections].join('\n\n');
}

/** Formats one narrow table per figure, for phones. If all rows have the same first subject, it is in the heading. */
function formatTables(members: readonly Comparison[]): string[] {
  return [...Map.groupBy(members, ({ figure }) => figure)].map(([figure, rows]) => {
    const [first] = rows;
    const isShared = rows.every(({ ours }) => ours === first?.ours);
    return [
      `|${FIGURES[figure]}${isShared ? `: ${first?.ours} / …` : ''}|ratio|in this run|`,
      '|---|---:|---:|',
      ...rows.map(({ ours, theirs, ratio, target, absolute }) => {
        const [median, min, max] = [ratio.median, ratio.min, ratio.max].map((each) =>
          each.toPrecision(3),
        );
        const goal = target && `, wanted ${target}`;
        const values = absolute.map((value) => formatValue(figure, value)).join(' / ');
        const name = isShared ? theirs : `${ours} / ${theirs}`;
        return `|${name}|${median} (${min}–${max})${goal}|${values}|`;
      }),
    ].join('\n');
  });
}

function formatValue(figure: Figure, value: number): string {
  return figure === 'cpu' || figure === 'p50' ? value.toFixed(2) : whole(value);
}

function whole(number: number): string {
  return Math.round(number).toLocaleString('en');
}

/** Writes the tables into the page, and the chart next to it. */
function writeResults(results: string): void {
  const page = readFileSync(PAGE, 'utf8');
  const place = /(?<=<!-- results -->\n).*(?=<!-- end of results -->)/s;
  writeFileSync(
    PAGE,
    page.replace(place, () => `\n${results.trim()}\n\n`),
  );
  // Two subjects are not peers: the service without a store, and SQLite without a service.
  const peers = comparisons.filter(
    ({ group, figure, theirs }) =>
      ['SQLite', 'PostgreSQL'].includes(group) &&
      figure === 'rate' &&
      !/no store|itself/.test(theirs),
  );
  writeFileSync('docs/performance.svg', drawBars(peers));
}

void main();
