import { createServer } from 'node:net';
import { listen } from '../test/support/listen';
import type { Contestant } from './contestants';
import type { Run } from './race';
import { ProcessorShare } from './processor-share';
import { connections, Server } from './server';
import { type Figure, type Measured, takeTurns, type Turn } from './statistics';

/** The number of connections per process. */
const CONNECTIONS = 16;

/** A comparison of different numbers of processes on one database. */
export interface Growth {
  readonly contestant: Contestant;
  /** The share of a core that each process gets. */
  readonly share: number;
  /** Numbers of processes, in ascending order. */
  readonly counts: readonly number[];
  /** Whether the processes share an inherited socket. By default, each has a port of its own. */
  readonly isOnOneSocket?: boolean;
}

/** A row of the table: a number of processes under load. */
interface Row {
  readonly count: number;
  /** The processes whose ports are loaded. On one socket, that of the first leads to all. */
  readonly targets: readonly Server[];
  readonly connectionsEach: number;
}

/**
 * Measures how the rate grows with the number of processes, each with the same share of a core. Returns
 * undefined if this machine does not let us limit processes.
 */
export async function measureGrowth(
  { databases, rounds, duration }: Run,
  { contestant, share, counts, isOnOneSocket = false }: Growth,
): Promise<readonly Measured[] | undefined> {
  const total = isOnOneSocket ? counts.reduce((sum, count) => sum + count) : Math.max(...counts);
  const shares = Array.from({ length: total }, (_, at) => ProcessorShare.create(`${at}`, share));
  if (!shares.every((each) => each !== undefined)) return undefined;
  const servers: Server[] = [];
  const database = await databases.create(contestant.store);
  try {
    const rows: Row[] = [];
    for (const count of counts) {
      if (isOnOneSocket) {
        // Each row has processes of its own, because all processes on a socket accept connections.
        const [first, ...others] = await startOnOneSocket(contestant, database, count);
        servers.push(first, ...others);
        await first.warmUp();
        rows.push({ count, targets: [first], connectionsEach: count * CONNECTIONS });
        continue;
      }
      for (let at = servers.length; at < count; at++) {
        const server = await Server.start(contestant, database);
        servers.push(server);
        await server.warmUp();
      }
      rows.push({ count, targets: servers.slice(0, count), connectionsEach: CONNECTIONS });
    }
    for (const [at, each] of shares.entries()) each.limit(servers[at]?.pid ?? NaN);
    const subjects = rows.map((row) => ({
      name: `${row.count} ${row.count === 1 ? 'process' : 'processes'} with ${Math.round(share * 100)} % of a core each`,
      turn: () => measureRow(row, duration),
    }));
    // The first turn under a limit is slower than all others.
    for (const { turn } of subjects) await turn();
    return await takeTurns(subjects, rounds);
  } finally {
    for (const server of servers) await server.stop();
    for (const each of shares) each.remove();
  }
}

/** Starts processes that inherit one socket, as from systemd. */
async function startOnOneSocket(
  contestant: Contestant,
  database: string,
  count: number,
): Promise<[Server, ...Server[]]> {
  const socket = createServer();
  const port = Number((await listen(socket)).port);
  const { fd } = (socket as unknown as { readonly _handle: { readonly fd: number } })._handle;
  const start = () => Server.start(contestant, database, { port, descriptor: fd });
  const servers: [Server, ...Server[]] = [await start()];
  while (servers.length < count) servers.push(await start());
  // From now on, only the processes accept connections.
  socket.close();
  return servers;
}

/** Loads all ports of a row at the same time. */
async function measureRow({ targets, connectionsEach }: Row, duration: number): Promise<Turn> {
  // A process that waits for a lock of SQLite for a second rejects its requests.
  const load = { ...connections(connectionsEach, duration), mayReject: true };
  const turns = await Promise.all(targets.map((server) => server.measure(load)));
  const valuesOf = (figure: Figure): number[] => turns.map((turn) => turn[figure] ?? NaN);
  return {
    rate: valuesOf('rate').reduce((sum, rate) => sum + rate),
    p50: Math.max(...valuesOf('p50')),
    p99: Math.max(...valuesOf('p99')),
  };
}
