import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import type { Group } from './groups';
import { formatTable } from './report';
import { FIGURES, type Measured } from './statistics';

const PAGE = 'docs/performance.md';

/** Every turn of all runs in this clone. The build of the benchmark is in the same folder, which git ignores. */
const TURNS = '.bench/performance.csv';

/** Appends the turns of a group to {@link TURNS}: run, group, subject, turn, figure, value. */
export function storeTurns(run: string, group: string, subjects: readonly Measured[]): void {
  const lines = subjects.flatMap(({ name, turns }) =>
    turns.flatMap((turn, at) =>
      Object.entries(turn).map(([figure, value]) =>
        [run, group, name, at + 1, FIGURES[figure as keyof typeof FIGURES], value]
          .map((cell) => `"${cell}"`)
          .join(','),
      ),
    ),
  );
  appendFileSync(TURNS, `${lines.join('\n')}\n`);
}

/** Replaces the section of a group on the page, or adds it at the end of the results. */
export function writeSection(
  run: string,
  name: string,
  group: Group,
  subjects: readonly Measured[],
): void {
  const page = readFileSync(PAGE, 'utf8');
  const note = group.note === undefined ? '' : `${group.note}\n\n`;
  const section = `### ${name}\n\n${note}Measured ${run}.\n\n${formatTable(group, subjects)}\n\n`;
  const end = page.indexOf('<!-- end of results -->');
  const found = page.indexOf(`### ${name}\n`);
  const from = found < 0 ? end : found;
  const next = page.indexOf('\n### ', from) + 1;
  const to = found < 0 || next === 0 ? end : next;
  writeFileSync(PAGE, page.slice(0, from) + section + page.slice(to));
}
