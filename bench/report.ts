import {
  type Figure,
  FIGURES,
  type Measured,
  ratioOf,
  type Spread,
  spreadOf,
  valuesOf,
} from './statistics';

/** The measured subjects of one comparison: a table of the page. */
export interface Result {
  readonly group: string;
  /** The columns. Ratios are those of the first. */
  readonly figures: readonly Figure[];
  /** `peers` shows how many times the reference is of a row, `variants` how many times a row is of it. */
  readonly kind: 'peers' | 'variants';
  readonly subjects: readonly Measured[];
}

/** Formats a result as a Markdown table of medians. Ratios also have their minimum and maximum. */
export function formatTable({ figures, kind, subjects }: Result): string {
  const [first] = subjects;
  const ratioName = kind === 'peers' ? 'Plant Store ÷ this' : 'this ÷ first row';
  const heading = ['', ...figures.map((figure) => FIGURES[figure]), ratioName];
  const rows = subjects.map((subject) => {
    const reference = subjects.find(({ name }) => name === subject.reference) ?? first;
    const medians = figures.map((figure) =>
      formatNumber(spreadOf(valuesOf(subject, figure)).median),
    );
    return [subject.name, ...medians, reference ? formatRatio(subject, reference) : ''];
  });
  const lines = [heading, ['---', ...heading.slice(1).map(() => '---:')], ...rows];
  return lines.map((cells) => `|${cells.join('|')}|`).join('\n');

  function formatRatio(subject: Measured, reference: Measured): string {
    const [figure] = figures;
    if (figure === undefined || subject === reference) return '';
    const ratio =
      kind === 'peers' ? ratioOf(reference, subject, figure) : ratioOf(subject, reference, figure);
    return formatSpread(ratio);
  }
}

/** Formats a median with its minimum and maximum. */
export function formatSpread({ median, min, max }: Spread): string {
  return `${median.toPrecision(3)} (${min.toPrecision(3)}–${max.toPrecision(3)})`;
}

/** Formats all turns of some results as CSV (RFC 4180). */
export function formatCsv(results: readonly Result[]): string {
  const rows = results.flatMap(({ group, figures, subjects }) =>
    subjects.flatMap((subject) =>
      figures.flatMap((figure) =>
        valuesOf(subject, figure).map((value, round) => [
          group,
          subject.name,
          FIGURES[figure],
          String(round + 1),
          String(Number(value.toPrecision(6))),
        ]),
      ),
    ),
  );
  const lines = [['group', 'subject', 'figure', 'turn', 'value'], ...rows];
  return lines.map((cells) => cells.map(quote).join(',') + '\r\n').join('');
}

function quote(cell: string): string {
  return /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}

export function formatNumber(value: number): string {
  if (Number.isNaN(value)) return '';
  return value < 100
    ? String(Number(value.toPrecision(3)))
    : Math.round(value).toLocaleString('en');
}
