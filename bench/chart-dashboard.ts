import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { drawPanel, type Line, picture } from './chart';
import { plantStore } from './contestants';
import { evaluate, type Sample, parseMetrics } from './promql';
import { Server, TOKEN } from './server';

interface Panel {
  readonly title: string;
  readonly gridPos: {
    readonly x: number;
    readonly y: number;
    readonly w: number;
    readonly h: number;
  };
  readonly fieldConfig: { readonly defaults: { readonly unit: string } };
  readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[];
}

/** Pixels of a unit of Grafana's grid, across and down. */
const [ACROSS, DOWN] = [40, 26];

/** Seconds, connections, and how many of a thousand requests are no NewPlant. */
const PHASES = [
  { duration: 12, connections: 16, badPerMille: 0 },
  { duration: 12, connections: 64, badPerMille: 20 },
  { duration: 6, connections: 1, badPerMille: 0 },
  { duration: 15, connections: 256, badPerMille: 5 },
];

const formats: Readonly<Record<string, (value: number) => string>> = {
  reqps: (value) => `${Math.round(value).toLocaleString('en')}/s`,
  s: (value) => `${(value * 1000).toLocaleString('en', { maximumSignificantDigits: 3 })} ms`,
  bytes: (value) => `${Math.round(value / 2 ** 20)} MiB`,
  percentunit: (value) => `${Math.round(value * 100)} %`,
};

/**
 * Draws the panels of docs/monitoring/dashboard.json as docs/monitoring/dashboard.svg, from the
 * metrics of our service under a load that changes: what the dashboard shows, not a measurement.
 */
export async function drawDashboard(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-dashboard-'));
  try {
    const samples = await observe(join(folder, 'plants.db'));
    const { panels } = JSON.parse(readFileSync('docs/monitoring/dashboard.json', 'utf8')) as {
      panels: Panel[];
    };
    const rows = Math.max(...panels.map(({ gridPos }) => gridPos.y + gridPos.h));
    writeFileSync(
      'docs/monitoring/dashboard.svg',
      picture(
        24 * ACROSS,
        rows * DOWN,
        panels.map((panel) => draw(panel, samples)),
      ),
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Reads the metrics of our service each second while the load changes. */
async function observe(database: string): Promise<Sample[]> {
  const server = await Server.start(plantStore.sqlite, database);
  const samples: Sample[] = [];
  const load = { isOver: false };
  const loaded = (async () => {
    for (const phase of PHASES) await server.measure(phase);
    load.isOver = true;
  })();
  while (!load.isOver) {
    const answer = await fetch(`http://127.0.0.1:${server.port}/metrics`, {
      headers: { Authorization: `Bearer ${TOKEN}` },
    });
    const series = parseMetrics(await answer.text(), 'plants:3000');
    samples.push({ time: performance.now() / 1000, series });
    await setTimeout(1000);
  }
  await loaded;
  await server.stop();
  return samples;
}

function draw({ title, gridPos, fieldConfig, targets }: Panel, samples: readonly Sample[]): string {
  const lines = targets.flatMap(({ expr, legendFormat }) => {
    const byName = new Map<string, [number, number][]>();
    for (const at of samples.keys()) {
      for (const { labels, value } of evaluate(expr, samples.slice(0, at + 1))) {
        const name = legendFormat.replace(
          /\{\{(\w+)\}\}/g,
          (_, label: string) => labels[label] ?? '',
        );
        const points = byName.get(name) ?? [];
        points.push([(samples[at]?.time ?? 0) - (samples[0]?.time ?? 0), value]);
        byName.set(name, points);
      }
    }
    return [...byName].map(([name, points]): Line => ({ name, points }));
  });
  const axes = {
    title,
    x: (value: number) => `${Math.round(value)} s`,
    y:
      formats[fieldConfig.defaults.unit] ??
      ((value: number) => value.toLocaleString('en', { maximumSignificantDigits: 3 })),
  };
  return drawPanel(lines, axes, {
    left: gridPos.x * ACROSS,
    top: gridPos.y * DOWN,
    width: gridPos.w * ACROSS,
    height: gridPos.h * DOWN,
  });
}
