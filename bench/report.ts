import {
  type Figure,
  FIGURES,
  type Measured,
  ratioOf,
  type Spread,
  spreadOf,
  valuesOf,
} from './statistics';

/** How a comparison is shown: a table of the page. */
export interface Table {
  /** The columns. Ratios are those of the first. */
  readonly figures: readonly Figure[];
  /** `peers` divides the reference by each row, `variants` each row by the reference. Undefined: no ratios. */
  readonly kind?: 'peers' | 'variants';
}

/** Formats a result as a Markdown table of medians, each with its minimum and maximum. */
export function formatTable({ figures, kind }: Table, subjects: readonly Measured[]): string {
  const [first] = subjects;
  const ratioNames = kind ? [kind === 'peers' ? 'Plant Store ÷ this' : 'this ÷ first row'] : [];
  const columns: readonly Figure[] = [...figures, 'load'];
  const heading = ['', ...columns.map((figure) => FIGURES[figure]), ...ratioNames];
  const rows = subjects.map((subject) => {
    const reference = subjects.find(({ name }) => name === subject.reference) ?? first;
    const spreads = columns.map((figure) => formatSpread(spreadOf(valuesOf(subject, figure))));
    const ratios = ratioNames.map(() => reference && formatRatio(subject, reference));
    return [subject.name, ...spreads, ...ratios];
  });
  const lines = [heading, ['---', ...heading.slice(1).map(() => '---:')], ...rows];
  return lines.map(formatRow).join('\n');

  function formatRatio(subject: Measured, reference: Measured): string {
    const [figure] = figures;
    if (figure === undefined || subject === reference) return '';
    return formatSpread(
      kind === 'peers' ? ratioOf(reference, subject, figure) : ratioOf(subject, reference, figure),
    );
  }
}

function formatRow(cells: readonly (string | undefined)[]): string {
  return `|${cells.join('|')}|`;
}

/** Formats a median with its minimum and maximum, or returns nothing if there is no value. */
export function formatSpread({ median, min, max }: Spread): string {
  if (Number.isNaN(median)) return '';
  return `${formatNumber(median)} (${formatNumber(min)}–${formatNumber(max)})`;
}

export function formatNumber(value: number): string {
  return value < 100
    ? String(Number(value.toPrecision(3)))
    : Math.round(value).toLocaleString('en');
}
