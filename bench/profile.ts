import { globSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { plantStore } from './contestants';
import type { Databases } from './databases';
import { formatNumber, formatRow } from './report';
import { connections, Server } from './server';

/** The part of V8's CPU profile that is read. */
interface Profile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string };
  }[];
  /** The time of the first sample in microseconds, by the clock of `process.hrtime`. */
  readonly startTime: number;
  readonly samples: readonly number[];
  /** The time before each sample, in microseconds. */
  readonly timeDeltas: readonly number[];
}

/**
 * Loads the service on SQLite under V8's profiler, and prints the processor time of all its threads per
 * layer, without layers below half a per cent.
 * The profiler itself takes part of the time, so the shares matter more than the sum.
 */
export async function profileLayers(databases: Databases, duration: number): Promise<void> {
  const folder = join(databases.folder, 'profiles');
  mkdirSync(folder);
  const environment = { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${folder}` };
  const server = await Server.start({ ...plantStore.sqlite, environment }, databases.newFile());
  await server.warmUp();
  const before = server.created;
  const began = Number(process.hrtime.bigint() / 1000n);
  await server.measure(connections(64, duration));
  const requests = server.created - before;
  await server.stop();

  const times = new Map<string, number>();
  for (const file of globSync(join(folder, '*.cpuprofile'))) {
    const profile = JSON.parse(readFileSync(file, 'utf8')) as Profile;
    const layers = new Map(profile.nodes.map(({ id, callFrame }) => [id, layerOf(callFrame)]));
    let now = profile.startTime;
    for (const [at, id] of profile.samples.entries()) {
      const delta = profile.timeDeltas[at] ?? 0;
      now += delta;
      const layer = layers.get(id) ?? '';
      if (now > began) times.set(layer, (times.get(layer) ?? 0) + delta);
    }
  }
  times.delete('(idle)');
  console.log('|Layer|CPU per request, µs|\n|---|---:|');
  const total = [...times.values()].reduce((sum, time) => sum + time, 0);
  const shown = [...times].filter(([, time]) => time > total / 200);
  for (const [layer, time] of shown.sort(([, a], [, b]) => b - a)) {
    console.log(formatRow([layer, formatNumber(time / requests)]));
  }
}

function layerOf({ functionName, url }: Profile['nodes'][number]['callFrame']): string {
  if (functionName === '(program)') return 'native code and kernel';
  if (url === '') return functionName.startsWith('(') ? functionName : 'built-in functions of V8';
  const [, packageName] = /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url) ?? [];
  if (packageName !== undefined) return packageName;
  const [builtIn] = /^node:(internal\/)?\w+/.exec(url) ?? [];
  if (builtIn !== undefined) return builtIn;
  const [, ours] = /\/dist\/(\w+\/\w+)/.exec(url) ?? [];
  return ours === undefined ? url : `our ${ours}`;
}
