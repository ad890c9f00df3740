import { type Measured, spreadOf, valuesOf } from './statistics';

/** The widest chart that a phone shows at full size. All sizes are in pixels. */
const WIDTH = 360;
const MAX_BAR_LENGTH = 270;
const HEADING_HEIGHT = 34;
const ROW_HEIGHT = 42;
const GAP = 12;

/** Draws the plants created per second over 64 connections as SVG, with one group of bars per store. */
export function drawBars(
  results: readonly [store: string, subjects: readonly Measured[]][],
): string {
  const stores = results.map(([store, subjects]) => ({
    store,
    bars: subjects
      .filter(({ name }) => !/, (1|1024) connections?$/.test(name))
      .map((subject) => ({
        name: subject.name.replace(/, 64 connections$/, ''),
        rate: spreadOf(valuesOf(subject, 'rate')).median,
      })),
  }));
  const maxRate = Math.max(...stores.flatMap(({ bars }) => bars.map(({ rate }) => rate)));

  let y = GAP;
  const lines: string[] = [];
  for (const { store, bars } of stores) {
    const heading = `${store}: plants per second, 64 connections`;
    lines.push(`<text class="heading" x="12" y="${y + 16}">${heading}</text>`);
    y += HEADING_HEIGHT;
    for (const [at, { name, rate }] of bars.entries()) {
      const kind = at === 0 ? 'ours' : 'theirs';
      const length = Math.max(2, Math.round((rate / maxRate) * MAX_BAR_LENGTH));
      lines.push(
        `<text class="${kind}" x="12" y="${y + 12}">${name}</text>`,
        `<rect class="${kind}" x="12" y="${y + 17}" width="${length}" height="15"/>`,
        `<text class="${kind}" x="${length + 20}" y="${y + 30}">${Math.round(rate).toLocaleString('en')}</text>`,
      );
      y += ROW_HEIGHT;
    }
    y += GAP;
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" width="${WIDTH}" height="${y}" font-family="sans-serif" font-size="14">
<style>
.ground{fill:#fff}text{fill:#222}.heading,.ours{font-weight:bold}rect.ours{fill:#2e7d32}rect.theirs{fill:#8a8a8a}
@media(prefers-color-scheme:dark){.ground{fill:#0d1117}text{fill:#e6edf3}rect.ours{fill:#57ab5a}}
</style>
<rect class="ground" width="100%" height="100%"/>
${lines.join('\n')}
</svg>
`;
}
