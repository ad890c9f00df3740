import { DatabaseSync } from 'node:sqlite';
import { batchingFastify, fastify, plantStore, typeOrm } from './contestants';
import { type Growth, measureGrowth } from './growth';
import { latencyAtFixedRates } from './latency';
import { neighbors } from './neighbors';
import { newConnections } from './new-connections';
import { products } from './products';
import { race, type Run, start, stop, underLoad } from './race';
import type { Table } from './report';
import { connections, Server } from './server';
import { type Figure, type Measured, takeTurns, type Turn } from './statistics';
import { loadTogether } from './together';
import { dataCommands, pgbench } from './tools';

/** A comparison: a table of the page. */
export interface Group extends Table {
  /** A sentence below the heading. */
  readonly note?: string;
  /** Undefined if this machine cannot measure the group. */
  measure(run: Run): Promise<readonly Measured[] | undefined>;
}

const PEER_FIGURES: readonly Figure[] = ['rate', 'p50', 'p99'];

/** The comparisons, in the order of the page. */
export const groups: Readonly<Record<string, Group>> = {
  SQLite: {
    figures: PEER_FIGURES,
    kind: 'peers',
    measure: (run) => {
      const contestants = [plantStore.sqlite, fastify.sqlite, batchingFastify.sqlite];
      return race(run, contestants, [1, 64, 1024], typeOrm('sqlite'));
    },
  },

  PostgreSQL: {
    figures: PEER_FIGURES,
    kind: 'peers',
    note: 'The row of pgbench is left out where it is not on the `PATH`.',
    async measure(run) {
      const { postgres, folder } = run.databases;
      const reference = `${plantStore.postgres.name}, 64 connections`;
      const database = await run.databases.newPostgresDatabase();
      const tools = await pgbench(postgres, database, folder, run.duration, reference);
      const others = [batchingFastify.postgres, ...typeOrm('postgres')];
      return race(run, [plantStore.postgres, fastify.postgres], [1, 64, 1024], others, tools);
    },
  },

  'Latency at a fixed rate of arrivals': {
    figures: ['rate', 'p50', 'p99', 'p999'],
    note: 'Requests arrive at fixed times, whether or not earlier ones have their responses. A latency counts from the arrival. The highest rate is that of 64 connections, each of which sends its next request when it has a response.',
    measure: latencyAtFixedRates,
  },

  'One neighbor misbehaves, on PostgreSQL': {
    figures: PEER_FIGURES,
    kind: 'variants',
    note: 'All rows have 64 connections. Rejected plants count as requests. The client that retries the locked id does not.',
    measure: neighbors,
  },

  'New connections under load': {
    figures: PEER_FIGURES,
    note: 'While 1,024 connections are busy, a new one is opened every 20 ms. The latencies are those of new connections, from the connection request to the first byte of the response. The rate is that of the busy ones.',
    measure: newConnections,
  },

  'Products on SQLite': productGroup('sqlite'),

  'Products on PostgreSQL': productGroup('postgres'),

  'Instances with a share of a core each, on PostgreSQL': growthGroup({
    contestant: plantStore.postgres,
    share: 0.1,
    counts: [1, 2, 4, 8],
  }),

  'Processes on one inherited socket': growthGroup({
    contestant: plantStore.postgres,
    share: 0.1,
    counts: [1, 2, 4],
    isOnOneSocket: true,
  }),

  'Processes with a share of a core each, on one SQLite file': growthGroup({
    contestant: plantStore.sqlite,
    share: 0.25,
    counts: [1, 2, 4],
  }),

  'Conditions on SQLite': {
    figures: PEER_FIGURES,
    kind: 'variants',
    async measure(run) {
      const ours = await start(run, plantStore.sqlite);
      const full = await Server.start(plantStore.sqlite, await makeFullDatabase(run));
      await full.warmUp();
      const load = connections(64, run.duration);
      const measured = await takeTurns(
        [
          underLoad(ours, load, 'without a key'),
          underLoad(ours, { ...load, isKeyed: true }, 'with a key each'),
          underLoad(full, load, `in a store of ${run.full.toLocaleString('en')} plants`),
        ],
        run.rounds,
      );
      await stop(ours, full);
      return measured;
    },
  },

  'Processor time, with the fastest peer': {
    figures: ['cpu'],
    kind: 'peers',
    async measure({ databases, rounds, duration }) {
      const load = { connections: [64], starts: 3, rounds, duration };
      const contestants = [plantStore.sqlite, batchingFastify.sqlite];
      const [measured] = await loadTogether(contestants, databases, load);
      return measured;
    },
  },

  'Start and memory on SQLite': {
    figures: ['start', 'rest', 'peak', 'cpu'],
    kind: 'peers',
    measure({ databases, rounds, duration }) {
      const smallHeap = '--max-semi-space-size=8';
      const subjects = [
        plantStore.sqlite,
        {
          ...plantStore.sqlite,
          name: `Plant Store, \`NODE_OPTIONS=${smallHeap}\``,
          environment: { NODE_OPTIONS: smallHeap },
        },
        fastify.sqlite,
      ].map((contestant) => ({
        name: contestant.name,
        turn: async (): Promise<Turn> => {
          const server = await Server.start(contestant, databases.newFile());
          const rest = server.memory().now;
          const { cpu } = await server.measure(connections(64, duration));
          const { peak } = server.memory();
          await server.stop();
          return { start: server.startupMs, rest, peak, cpu };
        },
      }));
      return takeTurns(subjects, rounds);
    },
  },

  'Import and export': {
    figures: ['rate', 'peak'],
    measure: ({ databases, plants, rounds }) =>
      takeTurns(dataCommands(plants, databases.folder, databases.postgres), rounds),
  },
};

function productGroup(store: 'sqlite' | 'postgres'): Group {
  return {
    figures: PEER_FIGURES,
    kind: 'peers',
    note: '`npm run bench -- --products` installs and measures them.',
    async measure(run) {
      if (!run.hasProducts) return undefined;
      return race(run, [plantStore[store]], [64], products(store));
    },
  };
}

function growthGroup(growth: Growth): Group {
  return {
    figures: PEER_FIGURES,
    kind: 'variants',
    note: 'A simulation of more cores. Not measured where the kernel does not let the benchmark limit a process.',
    measure: (run) => measureGrowth(run, growth),
  };
}

/** Creates a SQLite file that already contains plants, with ids on both sides of those to be created. */
async function makeFullDatabase({ databases, full }: Run): Promise<string> {
  const server = await Server.start(plantStore.sqlite, databases.newFile());
  await server.stop();
  const file = new DatabaseSync(server.database);
  file.exec(`INSERT INTO plants (id, name, tag)
    WITH RECURSIVE ids(id) AS (VALUES (1) UNION ALL SELECT id + 1 FROM ids WHERE id < ${full})
    SELECT iif(id % 2, -1, 1) * (1000000000000000 + id * 7919), 'Fern ' || id, 'shade' FROM ids`);
  file.close();
  return server.database;
}
