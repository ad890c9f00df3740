import type { Comparison } from './statistics';

/** A line of a {@link drawPanel} chart: points of x and y, in the order of x. */
export interface Line {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

/** What the axes of a {@link drawPanel} chart say. */
export interface Axes {
  readonly title: string;
  /** Formats a y. */
  readonly y: (value: number) => string;
  /** Formats an x. */
  readonly x: (value: number) => string;
}

const COLOURS = ['#2e7d32', '#ef6c00', '#1e88e5', '#8e24aa', '#c62828', '#00838f', '#9e9d24'];

/** What others reach of our rate, as SVG: bars, with whiskers from the least to the most. */
export function drawBars(comparisons: readonly (Comparison & { group: string })[]): string {
  const [left, width, step] = [400, 420, 30];
  const most = Math.max(1, ...comparisons.map(({ ratio }) => 1 / ratio.least));
  const x = (share: number): number => Math.round(left + (share / most) * width);

  const rows = comparisons.map(({ group, theirs, ratio, absolute: [, rate] }, at) => {
    const y = 40 + at * step;
    const label = `${Math.round(rate).toLocaleString('en')}/s`;
    return [
      `<text x="${left - 8}" y="${y + 14}" text-anchor="end">${escape(`${group}: ${theirs}`)}</text>`,
      `<rect x="${left}" y="${y}" width="${x(1 / ratio.median) - left}" height="20" fill="#9e9e9e"/>`,
      `<path class="axis" d="M${x(1 / ratio.most)} ${y + 10}H${x(1 / ratio.least)}"/>`,
      `<text x="${left + width + 12}" y="${y + 14}">${label}</text>`,
    ].join('\n');
  });
  return picture(960, 50 + comparisons.length * step, [
    '<text class="title" x="16" y="22">Creations a second at 64 connections; the line is Plant Store on the same store</text>',
    ...rows,
    `<path stroke="#2e7d32" stroke-width="2" d="M${x(1)} 32V${40 + comparisons.length * step}"/>`,
  ]);
}

/** One chart of lines, as a part of an SVG. */
export function drawPanel(
  lines: readonly Line[],
  { title, x: formatX, y: formatY }: Axes,
  box: { left: number; top: number; width: number; height: number },
): string {
  const [left, right] = [box.left + 68, box.left + box.width - 16];
  const [top, bottom] = [box.top + 36, box.top + box.height - 44];
  const points = lines.flatMap((line) => line.points);
  const most = ceilingOf(Math.max(...points.map(([, y]) => y), 0));
  const xs = points.map(([x]) => x);
  const [first, last] = xs.length === 0 ? [0, 1] : [Math.min(...xs), Math.max(...xs)];
  const placeOf = (x: number): number => (x - first) / (last - first || 1);
  const at = ([x, y]: readonly [number, number]): string =>
    `${(left + placeOf(x) * (right - left)).toFixed(1)} ${(bottom - (y / most) * (bottom - top)).toFixed(1)}`;

  const grid = [0, 0.5, 1].map((share) => {
    const y = Math.round(bottom - share * (bottom - top));
    return (
      `<path class="grid" d="M${left} ${y}H${right}"/>` +
      `<text class="small" x="${left - 6}" y="${y + 4}" text-anchor="end">${escape(formatY(share * most))}</text>`
    );
  });
  const ticks = [first, last].map(
    (x) =>
      `<text class="small" x="${Math.round(left + placeOf(x) * (right - left))}" y="${bottom + 16}" text-anchor="middle">${escape(formatX(x))}</text>`,
  );
  const drawn = lines.map(({ points: own }, index) => {
    const colour = COLOURS[index % COLOURS.length] ?? '';
    const path = `<path fill="none" stroke="${colour}" stroke-width="2" d="M${own.map(at).join('L')}"/>`;
    return own.length === 0 ? '' : path;
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
