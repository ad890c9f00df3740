import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { batchingFastify, plantStore } from './contestants';
import { type Run, start, stop } from './race';
import { connections, type Server } from './server';
import { type Measured, type Subject, takeTurns, type Turn } from './statistics';

const BUSY_CONNECTIONS = 1024;

/** How often a new connection is opened. */
const INTERVAL_MS = 20;

/** Measures how long a new connection waits for its first response while many others are busy. */
export async function newConnections(run: Run): Promise<readonly Measured[]> {
  const servers: Server[] = [];
  const contestants = [plantStore, batchingFastify].flatMap((each) => Object.values(each));
  for (const contestant of contestants) servers.push(await start(run, contestant));
  const subjects = servers.map((server): Subject => ({
    name: `${server.contestant.name}, ${server.contestant.store}`,
    turn: () => measureWaits(server, run.duration),
  }));
  const measured = await takeTurns(subjects, run.rounds);
  await stop(...servers);
  return measured;
}

async function measureWaits(server: Server, duration: number): Promise<Turn> {
  const load = server.measure(connections(BUSY_CONNECTIONS, duration));
  const waits: Promise<number>[] = [];
  for (const end = performance.now() + duration * 1000; performance.now() < end;) {
    waits.push(measureWait(server.port));
    await setTimeout(INTERVAL_MS);
  }
  const { rate } = await load;
  const sorted = (await Promise.all(waits)).sort((one, other) => one - other);
  const quantile = (part: number): number => sorted[Math.floor(sorted.length * part)] ?? NaN;
  return { rate, p50: quantile(0.5), p99: quantile(0.99) };
}

/**
 * Returns the milliseconds until the first byte of a response arrives. Any response counts.
 * @throws Error when the connection ends without one
 */
async function measureWait(port: number): Promise<number> {
  const began = performance.now();
  const socket = connect(port, '127.0.0.1');
  socket.write('GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await Promise.race([once(socket, 'data'), rejectAtEnd(socket)]);
  socket.destroy();
  return performance.now() - began;
}

async function rejectAtEnd(socket: Socket): Promise<never> {
  await once(socket, 'end');
  throw new Error('A new connection ended without a response.');
}
