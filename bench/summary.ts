import { formatNumber, type Result } from './report';
import { divide, type Figure, type Measured, spreadOf, valuesOf } from './statistics';

/** Sentences of the pages whose figures follow from the results of a run. */

const OURS = 'Plant Store, 64 connections';
const BY_HAND = {
  SQLite: 'Fastify, group commit by hand (WAL), 64 connections',
  PostgreSQL: 'Fastify, group commit by hand, 64 connections',
};

/** The summary of docs/performance.md. */
export function summarize(results: readonly Result[]): string {
  const find = finder(results);
  const median = (group: string, subject: string, figure: Figure): string =>
    formatNumber(spreadOf(valuesOf(find(group, subject), figure)).median);
  const times = (group: string, ours: string, theirs: string, figure: Figure = 'rate'): string =>
    ratio(find(group, ours), find(group, theirs), figure);
  const single = 'Plant Store, 1 connection';
  return [
    `64 connections, median of all turns:`,
    '',
    `- On SQLite, Plant Store stores ${median('SQLite', OURS, 'rate')} plants per second, with a p99 of ${median('SQLite', OURS, 'p99')} ms. That is ${times('SQLite', OURS, 'Nest + TypeORM save() (rollback journal), 64 connections')} times the rate of Nest with TypeORM's \`save()\`, ${times('SQLite', OURS, 'Nest + TypeORM insert() (WAL), 64 connections')} times that of \`insert()\`, and ${times('SQLite', OURS, 'Fastify, one commit per request (WAL), 64 connections')} times that of Fastify with one commit per request.`,
    `- On PostgreSQL, it stores ${median('PostgreSQL', OURS, 'rate')} plants per second, with a p99 of ${median('PostgreSQL', OURS, 'p99')} ms. That is ${times('PostgreSQL', OURS, 'Nest + TypeORM save(), 64 connections')} times the rate of \`save()\`, ${times('PostgreSQL', OURS, 'Nest + TypeORM insert(), 64 connections')} times that of \`insert()\`, and ${times('PostgreSQL', OURS, 'Fastify, one insert per request, 64 connections')} times that of Fastify with one insert per request.`,
    `- Fastify with a group commit written by hand stores ${times('SQLite', BY_HAND.SQLite, OURS)} times as many plants as Plant Store on SQLite, and ${times('PostgreSQL', BY_HAND.PostgreSQL, OURS)} times as many on PostgreSQL.`,
    `- A single request on an idle service takes ${times('SQLite', single, 'Fastify, one commit per request (WAL), 1 connection', 'p50')} times as long as with Fastify on SQLite (${median('SQLite', single, 'p50')} ms), and ${times('PostgreSQL', single, 'Fastify, one insert per request, 1 connection', 'p50')} times as long on PostgreSQL (${median('PostgreSQL', single, 'p50')} ms).`,
  ].join('\n');
}

/** The chart of the README, and what it shows. */
export function describePeers(results: readonly Result[]): string {
  const find = finder(results);
  const [sqlite, postgres] = (['SQLite', 'PostgreSQL'] as const).map((group) =>
    ratio(find(group, BY_HAND[group]), find(group, OURS), 'rate'),
  );
  const oneCommit = 'Fastify, one commit per request (WAL)';
  const rate = ratio(find('SQLite', OURS), find('SQLite', `${oneCommit}, 64 connections`), 'rate');
  const latency = ratio(
    find('SQLite', 'Plant Store, 1 connection'),
    find('SQLite', `${oneCommit}, 1 connection`),
    'p50',
  );
  return [
    `Plain Fastify with [a group commit written by hand](bench/baselines/fastify.mjs) is faster: over 64 connections, it stores ${sqlite} times as many plants per second as Plant Store on SQLite, and ${postgres} times as many on PostgreSQL. A single request on an idle service takes ${latency} times as long as with plain Fastify on SQLite.`,
    'In return, Plant Store reads every id exactly, and rejects what a store cannot keep exactly. A plant whose id exists fails alone, not with its batch. Retries are safe. If the store is overloaded or fails, the response says whether the plant may be stored. Requests are read while a batch is synced to disk. And the service has metrics, logs, and tokens with scopes.',
    `![Bar chart: plants created per second over 64 connections. On SQLite, Fastify with a group commit by hand creates ${sqlite} times as many as Plant Store, and Plant Store ${rate} times as many as Fastify with one commit per request. On PostgreSQL, Fastify with a group commit by hand creates ${postgres} times as many as Plant Store.](docs/performance.svg)`,
  ].join('\n\n');
}

function ratio(dividend: Measured, divisor: Measured, figure: Figure): string {
  return formatNumber(Number(spreadOf(divide(dividend, divisor, figure)).median.toPrecision(2)));
}

function finder(results: readonly Result[]): (group: string, subject: string) => Measured {
  return (group, subject) => {
    const subjects = results.find((result) => result.group === group)?.subjects;
    const found = subjects?.find(({ name }) => name === subject);
    if (!found) throw new Error(`docs/performance.csv has no "${subject}" in "${group}"`);
    return found;
  };
}
