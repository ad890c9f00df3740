import { writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { parseArgs } from 'node:util';
import { compareBuilds } from './compare';
import { Databases } from './databases';
import { groups } from './groups';
import { drawBars } from './chart';
import { storeTurns, writeSection } from './page';
import { installProducts } from './products';
import type { Run } from './race';
import { formatTable } from './report';
import type { Measured } from './statistics';

/**
 * The benchmark: groups of subjects that run in alternating turns. Prints tables, appends all turns to
 * .bench/performance.csv, and writes the tables and the chart of docs/performance.md.
 */
const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    /** The duration of a turn in whole seconds. */
    seconds: { type: 'string', default: '6' },
    /** Only groups whose name contains this. The tables of the others stay. */
    only: { type: 'string', default: '' },
    /** Also installs and measures the products of others. */
    products: { type: 'boolean', default: false },
    /** The number of plants to export and import. */
    plants: { type: 'string', default: '300000' },
    /** The number of plants in a full store. */
    full: { type: 'string', default: '10000000' },
    /** Stores and writes nothing. */
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

async function main(): Promise<void> {
  if (options.products) installProducts();
  // Nothing else holds the process while PostgreSQL starts: its process is detached, so that Jest can exit.
  const alive = setInterval(() => undefined, 60_000);
  const databases = await Databases.start(Number(options['sync-ms']));
  try {
    if (options.against === '') await compareServers(databases);
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

/** Measures all groups and writes each table, so that a failure loses only one group. */
async function compareServers(databases: Databases): Promise<void> {
  const run: Run = {
    databases,
    rounds,
    duration,
    plants: Number(options.plants),
    full: Number(options.full),
    hasProducts: options.products,
  };
  const description = describeRun();
  const drawn: [store: string, subjects: readonly Measured[]][] = [];
  for (const [name, group] of Object.entries(groups)) {
    if (!name.includes(options.only)) continue;
    console.error(`${new Date().toISOString().slice(11, 19)} ${name}`);
    const subjects = await group.measure(run);
    console.log(`\n### ${name}\n\n${subjects ? formatTable(group, subjects) : 'Not measured.'}`);
    if (!subjects || options['no-write']) continue;
    storeTurns(description, name, subjects);
    writeSection(description, name, group, subjects);
    if (['SQLite', 'PostgreSQL'].includes(name)) drawn.push([name, subjects]);
  }
  if (drawn.length === 2) writeFileSync('docs/performance.svg', drawBars(drawn));
}

/** Describes when, where and how long the run measures. */
function describeRun(): string {
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`;
  const machine = `${cpus().length} × ${cpus()[0]?.model ?? 'CPU'}, ${memory}`;
  const date = new Date().toISOString().slice(0, 10);
  return `${date}, Node.js ${process.version}, ${machine}; ${rounds} rounds with turns of ${duration} s`;
}

void main();
