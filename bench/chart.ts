import type { Comparison } from './statistics';

const [WIDTH, ROW, BAR] = [460, 42, 300];

/**
 * The creations a second of our service and of others, as SVG: for each store a bar a peer. Rates of
 * others are our rate divided by the ratio of the table. It is narrow, for phones.
 */
export function drawBars(comparisons: readonly (Comparison & { group: string })[]): string {
  const groups = [...Map.groupBy(comparisons, ({ group }) => group)];
  const rows = groups.flatMap(([group, others]) => {
    const ours = others[0]?.absolute[0] ?? NaN;
    return [
      { name: `${group}: Plant Store`, rate: ours, colour: '#2e7d32' },
      ...others.map(({ theirs, ratio }) => ({
        name: `${group}: ${theirs}`,
        rate: ours / ratio.median,
        colour: '#9e9e9e',
      })),
    ];
  });
  const most = Math.max(...rows.map(({ rate }) => rate));
  const bars = rows.map(({ name, rate, colour }, at) => {
    const y = 36 + at * ROW;
    const length = Math.max(2, Math.round((rate / most) * BAR));
    return [
      `<text x="12" y="${y + 14}">${escape(name)}</text>`,
      `<rect x="12" y="${y + 19}" width="${length}" height="15" fill="${colour}"/>`,
      `<text x="${length + 20}" y="${y + 31}">${Math.round(rate).toLocaleString('en')}/s</text>`,
    ].join('\n');
  });
  const height = 44 + rows.length * ROW;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" font-family="sans-serif" font-size="14">`,
    '<style>',
    '.ground{fill:#fff}text{fill:#222}.title{font-weight:bold}',
    '@media(prefers-color-scheme:dark){.ground{fill:#16191c}text{fill:#e6e6e6}}',
    '</style>',
    '<rect class="ground" width="100%" height="100%"/>',
    '<text class="title" x="12" y="22">Creations a second, at 64 connections</text>',
    ...bars,
    '</svg>\n',
  ].join('\n');
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
