import type { Result } from './report';
import { type Measured, spreadOf, valuesOf } from './statistics';

/** The widest chart that a phone shows at full size. All sizes are in pixels. */
const WIDTH = 360;
const MAX_BAR_LENGTH = 270;
const HEADING_HEIGHT = 34;
const ROW_HEIGHT = 42;

interface Row {
  readonly name: string;
  readonly rate: number;
  readonly kind: 'ours' | 'theirs';
}

/** Draws the plants created per second over 64 connections as SVG, with one group of bars per store. */
export function drawBars(results: readonly Result[]): string {
  const stores = results.map(({ group, subjects }) => ({ store: group, rows: rowsOf(subjects) }));
  const maxRate = Math.max(...stores.flatMap(({ rows }) => rows.map(({ rate }) => rate)));

  let y = 12;
  const lines = stores.flatMap(({ store, rows }) => {
    const heading = drawHeading(`${store}: plants per second, 64 connections`, y);
    y += HEADING_HEIGHT;
    const bars = rows.map((row) => {
      const bar = drawBar(row, Math.max(2, Math.round((row.rate / maxRate) * MAX_BAR_LENGTH)), y);
      y += ROW_HEIGHT;
      return bar;
    });
    y += 12;
    return [heading, ...bars];
  });

  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" width="${WIDTH}" height="${y}" font-family="sans-serif" font-size="14">`,
    '<style>',
    '.ground{fill:#fff}text{fill:#222}.heading,.ours{font-weight:bold}rect.ours{fill:#2e7d32}rect.theirs{fill:#8a8a8a}',
    '@media(prefers-color-scheme:dark){.ground{fill:#0d1117}text{fill:#e6edf3}rect.ours{fill:#57ab5a}}',
    '</style>',
    '<rect class="ground" width="100%" height="100%"/>',
    ...lines,
    '</svg>\n',
  ].join('\n');
}

/** Returns the medians at 64 connections that the table shows. */
function rowsOf(subjects: readonly Measured[]): Row[] {
  const drawn = subjects.filter(({ name }) => !/, (1|1024) connections?$/.test(name));
  return drawn.map((subject, at) => ({
    name: subject.name.replace(/, 64 connections$/, ''),
    rate: spreadOf(valuesOf(subject, 'rate')).median,
    kind: at === 0 ? 'ours' : 'theirs',
  }));
}

function drawHeading(text: string, y: number): string {
  return `<text class="heading" x="12" y="${y + 16}">${escape(text)}</text>`;
}

function drawBar({ name, rate, kind }: Row, length: number, y: number): string {
  return [
    `<text class="${kind}" x="12" y="${y + 12}">${escape(name)}</text>`,
    `<rect class="${kind}" x="12" y="${y + 17}" width="${length}" height="15"/>`,
    `<text class="${kind}" x="${length + 20}" y="${y + 30}">${Math.round(rate).toLocaleString('en')}</text>`,
  ].join('\n');
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
