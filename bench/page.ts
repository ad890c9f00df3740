import { readFileSync, writeFileSync } from 'node:fs';
import { drawBars } from './chart';
import { formatCsv, parseCsv } from './csv';
import { groups } from './groups';
import { formatTable, type Result } from './report';
import { describePeers, summarize } from './summary';
import { formatTargets } from './targets';

const CSV = 'docs/performance.csv';

/** Stores a result instead of the older one of its group. Groups that no longer exist are removed. */
export function storeResult(measured: Result): void {
  const stored = [measured, ...parseCsv(readFileSync(CSV, 'utf8'))];
  const results = Object.keys(groups).flatMap(
    (name) => stored.find(({ group }) => group === name) ?? [],
  );
  writeFileSync(CSV, formatCsv(results));
}

/** Writes everything that follows from docs/performance.csv: parts of the page and of the README, and the chart. */
export function writePages(): void {
  for (const [path, text] of renderPages()) writeFileSync(path, text);
}

/** Returns the files that follow from docs/performance.csv, by path. */
export function renderPages(): Map<string, string> {
  const results = parseCsv(readFileSync(CSV, 'utf8'));
  const drawn = results.filter(({ group }) => ['SQLite', 'PostgreSQL'].includes(group));
  const page = readFileSync('docs/performance.md', 'utf8');
  const parts = {
    summary: summarize(results),
    targets: formatTargets(results),
    results: formatTables(results),
  };
  return new Map([
    ['docs/performance.svg', drawBars(drawn)],
    [
      'docs/performance.md',
      Object.entries(parts).reduce((text, [name, part]) => replacePart(text, name, part), page),
    ],
    ['README.md', replacePart(readFileSync('README.md', 'utf8'), 'peers', describePeers(results))],
  ]);
}

function formatTables(results: readonly Result[]): string {
  const runs = new Set(results.map(({ run }) => run));
  const tables = Object.entries(groups).flatMap(([name, { note, ...table }]) => {
    const result = results.find(({ group }) => group === name);
    const lines = [`### ${name}`, ...(note === undefined ? [] : [note])];
    if (!result) return [...lines, 'Not measured.'];
    const measured = runs.size === 1 ? [] : [`Measured ${result.run}.`];
    return [...lines, ...measured, formatTable(table, result.subjects)];
  });
  return [...(runs.size === 1 ? [`Measured ${[...runs].join('')}.`] : []), ...tables].join('\n\n');
}

/** Replaces what is between the two comments of a part, such as `<!-- results -->` and `<!-- end of results -->`. */
function replacePart(page: string, name: string, text: string): string {
  const place = new RegExp(`(?<=<!-- ${name} -->\n).*(?=<!-- end of ${name} -->)`, 's');
  return page.replace(place, () => `\n${text}\n\n`);
}
