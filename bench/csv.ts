import type { Result } from './report';
import { type Figure, FIGURES, valuesOf } from './statistics';

const COLUMNS = ['group', 'run', 'subject', 'compared with', 'figure', 'turn', 'value'];

/** Formats all turns of some results as CSV (RFC 4180). */
export function formatCsv(results: readonly Result[]): string {
  const rows = results.flatMap(({ group, run, subjects }) =>
    subjects.flatMap((subject) =>
      Object.entries(FIGURES).flatMap(([figure, title]) =>
        valuesOf(subject, figure as Figure)
          .filter((value) => !Number.isNaN(value))
          .map((value, at) => [
            ...[group, run, subject.name, subject.reference ?? '', title],
            ...[String(at + 1), String(Number(value.toPrecision(6)))],
          ]),
      ),
    ),
  );
  return [COLUMNS, ...rows].map((cells) => cells.map(quote).join(',') + '\r\n').join('');
}

/** Reads what {@link formatCsv} has written. */
export function parseCsv(text: string): Result[] {
  const results: { group: string; run: string; subjects: ParsedSubject[] }[] = [];
  for (const line of text.split('\r\n').slice(1, -1)) {
    const [group = '', run = '', name = '', reference = '', title, turn, value] = cellsOf(line);
    const figure = Object.keys(FIGURES).find((each) => FIGURES[each as Figure] === title);
    if (figure === undefined) throw new Error(`docs/performance.csv: unknown figure in ${line}`);
    if (results.at(-1)?.group !== group) results.push({ group, run, subjects: [] });
    const subjects = results.at(-1)?.subjects ?? [];
    if (subjects.at(-1)?.name !== name) {
      subjects.push({ name, reference: reference === '' ? undefined : reference, turns: [] });
    }
    const turns = subjects.at(-1)?.turns ?? [];
    const at = Number(turn) - 1;
    turns[at] = { ...turns[at], [figure]: Number(value) };
  }
  return results;
}

interface ParsedSubject {
  readonly name: string;
  readonly reference: string | undefined;
  readonly turns: Partial<Record<Figure, number>>[];
}

function quote(cell: string): string {
  return /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}

/** Returns the cells of a line. No cell contains a line break. */
function cellsOf(line: string): string[] {
  return Array.from(line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,"]*))/g), ([, quoted, plain]) =>
    quoted === undefined ? (plain ?? '') : quoted.replaceAll('""', '"'),
  );
}
