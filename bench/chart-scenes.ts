import { writeFileSync } from 'node:fs';
import { drawLines, type Line } from './chart';
import type { Measurement } from './server';
import { spreadOf } from './statistics';

/**
 * Draws latency by load, and cost by connections, of the scenes that differ in their connections
 * alone, into docs/latency.svg and docs/cost.svg.
 */
export function drawScenes(
  measurements: ReadonlyMap<{ readonly name: string }, readonly Measurement[]>,
): void {
  const scenes = [...measurements].flatMap(([{ name }, measured]) => {
    const [, connections] = /^([\d,]+) connections?$/.exec(name) ?? [];
    return connections === undefined
      ? []
      : [{ connections: Number(connections.replaceAll(',', '')), measured }];
  });
  const line = (name: string, pick: (measurement: Measurement) => number): Line => ({
    name,
    points: scenes.map(({ connections, measured }) => [
      connections,
      spreadOf(measured.map(pick)).median,
    ]),
  });
  const rateOf = new Map(line('', ({ rate }) => rate).points);
  const whole = (value: number): string => Math.round(value).toLocaleString('en');
  const load = (connections: number): string =>
    `${connections}: ${whole((rateOf.get(connections) ?? 0) / 1000)}k/s`;

  writeFileSync(
    'docs/latency.svg',
    drawLines([line('median', ({ p50 }) => p50), line('99 %', ({ p99 }) => p99)], {
      title: 'Latency by load, SQLite (connections: requests a second)',
      x: load,
      y: (value) => `${value} ms`,
      isCategorical: true,
    }),
  );
  writeFileSync(
    'docs/cost.svg',
    drawLines([line('all threads of the server', ({ cpu }) => cpu)], {
      title: 'Processor time of a creation by connections, SQLite',
      x: whole,
      y: (value) => `${value} µs`,
      isCategorical: true,
    }),
  );
}
