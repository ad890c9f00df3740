import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { Measurement, Server } from './server';

/** What a request costs that hardly varies with the machine. Undefined where a tool is missing. */
export interface Costs {
  /** Instructions of the main thread, of the program and of the system: needs `perf`. */
  readonly instructions: number | undefined;
  /** Bytes allocated on the heap of the main thread. */
  readonly bytes: number;
  /** System calls of all threads: needs `strace`. */
  readonly calls: number | undefined;
}

/** Counts what the requests of a warm server cost. Each count is a round of its own, as tools slow it down. */
export async function countCosts(
  server: Server,
  folder: string,
  measure: () => Promise<Measurement>,
): Promise<Costs> {
  const pid = String(server.pid);
  const before = await server.allocatedBytes();
  const { requests } = await measure();
  const bytes = ((await server.allocatedBytes()) - before) / requests;

  const perf = join(folder, `perf-${pid}`);
  const counters = ['stat', '-x,', '-e', 'instructions', '-o', perf, '-t', pid];
  const counted = await watch('perf', counters, measure);
  const strace = join(folder, `strace-${pid}`);
  const traced = await watch('strace', ['-f', '-c', '-o', strace, '-p', pid], measure);
  return {
    instructions: perRequest(readCount(perf, /^(\d+),.*instructions/m), counted),
    bytes,
    // % time, seconds, usecs/call, calls, and errors where there are any.
    calls: perRequest(readCount(strace, /^ *100\.00 +\S+ +\d+ +(\d+) .*total$/m), traced),
  };
}

/** Measures while a tool watches; undefined where the tool is missing. */
async function watch(
  tool: string,
  args: readonly string[],
  measure: () => Promise<Measurement>,
): Promise<Measurement | undefined> {
  if (spawnSync(tool, ['--version']).error) return undefined;
  const watcher: ChildProcess = spawn(tool, args, { stdio: 'ignore' });
  // It does not tell when it has attached itself.
  await setTimeout(500);
  const measurement = await measure();
  watcher.kill('SIGINT');
  await once(watcher, 'exit');
  return measurement;
}

function readCount(file: string, pattern: RegExp): number | undefined {
  const [, count] = pattern.exec(existsSync(file) ? readFileSync(file, 'utf8') : '') ?? [];
  return count === undefined ? undefined : Number(count);
}

function perRequest(
  count: number | undefined,
  measurement: Measurement | undefined,
): number | undefined {
  return count !== undefined && measurement ? count / measurement.requests : undefined;
}
