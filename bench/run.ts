import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { DatabaseSync } from 'node:sqlite';
import { parseArgs } from 'node:util';
import { drawBars } from './chart';
import { compareBuilds } from './compare';
import {
  batchingFastify,
  type Contestant,
  fastify,
  nest,
  plantStore,
  typeOrm,
} from './contestants';
import { Databases } from './databases';
import { AUDIENCE, startIssuer } from './issuer';
import { formatCsv, formatTable, type Result } from './report';
import { type Load, Server } from './server';
import { type Figure, type Measured, type Subject, takeTurns, type Turn } from './statistics';
import { loadTogether } from './together';
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
     * The folder of another build. Only compares create requests with it, and exits with code 1 if their rate
     * is much lower. The other options below apply to this comparison.
     */
    against: { type: 'string', default: '' },
    /** Where both builds store plants: sqlite or postgres. */
    store: { type: 'string', default: 'sqlite' },
    /** The numbers of connections, separated by commas. */
    connections: { type: 'string', default: '64' },
    /** How often both builds are started. */
    starts: { type: 'string', default: '3' },
    /** By how much each sync of the database takes longer, in milliseconds. Needs a C compiler. */
    'sync-ms': { type: 'string', default: '0' },
  },
});
const rounds = Number(options.rounds);
const duration = Number(options.seconds);

const PAGE = 'docs/performance.md';

/** The number of ids that the first turn of replays creates and later turns replay. */
const REPLAYED_IDS = 50_000;

const PEER_FIGURES: readonly Figure[] = ['rate', 'p50', 'p99'];

/** The coordinator of a Citus cluster with an empty, distributed table `plants`; for this run alone. */
const { CITUS_URL } = process.env;

let databases: Databases;

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
      const database = await databases.newPostgresDatabase();
      const tools = hasTool('pgbench')
        ? [await pgbench(databases.postgres, database, databases.folder, duration, reference)]
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
        const url = await databases.create('postgres');
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
    measure: () => compareCpu(batchingFastify.sqlite),
  },

  'Processor time, with Nest that stores nothing': {
    figures: ['cpu'],
    kind: 'peers',
    measure: () => compareCpu(nest),
  },

  'Start and memory on SQLite': {
    figures: ['start', 'rest', 'peak'],
    kind: 'peers',
    measure: () =>
      takeTurns(
        [plantStore.sqlite, fastify.sqlite].map((contestant) => ({
          name: contestant.name,
          turn: async (): Promise<Turn> => {
            const server = await Server.start(contestant, databases.newFile());
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
    measure: () =>
      takeTurns(dataCommands(Number(options.plants), databases.folder, databases.postgres), rounds),
  },
};

async function main(): Promise<void> {
  // Nothing else holds the process while PostgreSQL starts: its process is detached, so that Jest can exit.
  const alive = setInterval(() => undefined, 60_000);
  databases = await Databases.start(Number(options['sync-ms']));
  try {
    if (options.against === '') await compareAll();
    else {
      const store = options.store === 'postgres' ? ('postgres' as const) : ('sqlite' as const);
      const connections = options.connections.split(',').map(Number);
      const starts = Number(options.starts);
      const comparison = { other: options.against, store, connections, starts, rounds, duration };
      await compareBuilds(comparison, databases);
    }
  } finally {
    await databases.remove();
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

/** Compares the processor time of our service with that of another server, on SQLite. */
async function compareCpu(other: Contestant): Promise<readonly Measured[]> {
  const load = { connections: [64], starts: 3, rounds, duration };
  const [measured] = await loadTogether([plantStore.sqlite, other], databases, load);
  return measured ?? [];
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
  const server = await Server.start(contestant, await databases.create(contestant.store));
  await server.warmUp();
  return server;
}

async function stop(...servers: Server[]): Promise<void> {
  for (const server of servers) await server.stop();
}

/** Counts the plants of a server in its database. */
async function countPlants({ contestant, database }: Server): Promise<number> {
  const query = 'SELECT count(*) AS plants FROM plants';
  if (contestant.store === 'postgres') {
    const [row] = await databases.postgres.execute(query, new URL(database).pathname.slice(1));
    return Number(row?.plants);
  }
  const file = new DatabaseSync(database, { readOnly: true });
  const row = file.prepare(query).get();
  file.close();
  return Number(row?.plants);
}

/** Creates a SQLite file that already contains plants, with ids on both sides of those to be created. */
async function makeFullDatabase(): Promise<string> {
  const server = await Server.start(plantStore.sqlite, databases.newFile());
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
