import type { Spread } from './statistics';

/** A line of a {@link drawLines} chart: points of x and y, in the order of x. */
export interface Line {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

/** What the axes of a {@link drawLines} chart say. */
export interface Axes {
  readonly title: string;
  /** Formats a y. */
  readonly y: (value: number) => string;
  /** Formats an x. */
  readonly x: (value: number) => string;
  /** Whether each point has a place of its own below the chart, with its x written there. */
  readonly isCategorical?: boolean;
}

const COLOURS = ['#2e7d32', '#ef6c00', '#1e88e5', '#8e24aa', '#c62828', '#00838f', '#9e9d24'];

/** A bar chart of requests a second, with whiskers from the least to the most, as SVG. */
export function drawChart(bars: readonly { name: string; rate: Spread; cpu: Spread }[]): string {
  const [left, width, step] = [320, 460, 30];
  const most = Math.max(...bars.map(({ rate }) => rate.most));
  const x = (rate: number): number => Math.round(left + (rate / most) * width);

  const rows = bars.map(({ name, rate, cpu }, at) => {
    const y = 40 + at * step;
    const colour = name.startsWith('Plant Store') ? '#2e7d32' : '#9e9e9e';
    const label = `${Math.round(rate.median).toLocaleString('en')}/s · ${cpu.median.toFixed(1)} µs`;
    return [
      `<text x="${left - 8}" y="${y + 14}" text-anchor="end">${escape(name)}</text>`,
      `<rect x="${left}" y="${y}" width="${x(rate.median) - left}" height="20" fill="${colour}"/>`,
      `<path class="axis" d="M${x(rate.least)} ${y + 10}H${x(rate.most)}"/>`,
      `<text x="${x(rate.most) + 8}" y="${y + 14}">${label}</text>`,
    ].join('\n');
  });
  return picture(960, 50 + bars.length * step, [
    '<text class="title" x="16" y="22">Requests a second at 64 connections · server CPU a request</text>',
    ...rows,
  ]);
}

/** A chart of lines as SVG, 640 by 320. */
export function drawLines(lines: readonly Line[], axes: Axes): string {
  return picture(640, 320, [drawPanel(lines, axes, { left: 0, top: 0, width: 640, height: 320 })]);
}

/** One chart of lines, as a part of an SVG. */
export function drawPanel(
  lines: readonly Line[],
  { title, x: formatX, y: formatY, isCategorical = false }: Axes,
  box: { left: number; top: number; width: number; height: number },
): string {
  const [left, right] = [box.left + 68, box.left + box.width - 16];
  const [top, bottom] = [box.top + 36, box.top + box.height - 44];
  const points = lines.flatMap((line) => line.points);
  const xs = [...new Set(points.map(([x]) => x))].sort((a, b) => a - b);
  const most = ceilingOf(Math.max(...points.map(([, y]) => y), 0));
  const [first = 0, last = 1] = [xs[0], xs.at(-1)];
  const placeOf = (x: number): number =>
    isCategorical ? (xs.indexOf(x) + 0.5) / xs.length : (x - first) / (last - first || 1);
  const at = ([x, y]: readonly [number, number]): string =>
    `${(left + placeOf(x) * (right - left)).toFixed(1)} ${(bottom - (y / most) * (bottom - top)).toFixed(1)}`;

  const grid = [0, 0.5, 1].map((share) => {
    const y = Math.round(bottom - share * (bottom - top));
    return (
      `<path class="grid" d="M${left} ${y}H${right}"/>` +
      `<text class="small" x="${left - 6}" y="${y + 4}" text-anchor="end">${escape(formatY(share * most))}</text>`
    );
  });
  const marked = isCategorical ? xs : [first, last];
  const ticks = marked.map(
    (x) =>
      `<text class="small" x="${Math.round(left + placeOf(x) * (right - left))}" y="${bottom + 16}" text-anchor="middle">${escape(formatX(x))}</text>`,
  );
  const drawn = lines.map(({ points: own }, index) => {
    const colour = COLOURS[index % COLOURS.length] ?? '';
    const path = `<path fill="none" stroke="${colour}" stroke-width="2" d="M${own.map(at).join('L')}"/>`;
    const dots = own.map((point) => {
      const [cx, cy] = at(point).split(' ');
      return `<circle cx="${cx}" cy="${cy}" r="3" fill="${colour}"/>`;
    });
    return own.length === 0 ? '' : path + (isCategorical ? dots.join('') : '');
  });
  let place = left;
  const legend = lines.map(({ name }, index) => {
    const begin = place;
    place += 24 + name.length * 6.5;
    return (
      `<rect x="${begin.toFixed(0)}" y="${bottom + 25}" width="10" height="10" fill="${COLOURS[index % COLOURS.length]}"/>` +
      `<text class="small" x="${(begin + 14).toFixed(0)}" y="${bottom + 34}">${escape(name)}</text>`
    );
  });
  return [
    `<text class="title" x="${box.left + 16}" y="${box.top + 22}">${escape(title)}</text>`,
    ...grid,
    ...ticks,
    ...drawn,
    ...legend,
  ].join('\n');
}

/** The next round number: 1, 2, 4 or 6 of a power of ten. */
function ceilingOf(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 4, 6].find((digit) => digit * power >= value) ?? 10) * power;
}

/** An SVG that is readable on a light page and on a dark one. */
export function picture(width: number, height: number, parts: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="sans-serif" font-size="13">`,
    '<style>',
    '.ground{fill:#fff}text{fill:#222}.title{font-weight:bold}.small{font-size:11px}',
    '.axis{stroke:#222}.grid{stroke:#ddd}',
    '@media(prefers-color-scheme:dark){.ground{fill:#16191c}text{fill:#e6e6e6}.axis{stroke:#e6e6e6}.grid{stroke:#3a3f44}}',
    '</style>',
    '<rect class="ground" width="100%" height="100%"/>',
    ...parts,
    '</svg>\n',
  ].join('\n');
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
