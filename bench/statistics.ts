/** The median of some numbers, and the least and the greatest of them. */
export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

export function spreadOf(numbers: readonly number[]): Spread {
  const sorted = numbers.toSorted((a, b) => a - b);
  return {
    median: sorted[sorted.length >> 1] ?? NaN,
    least: sorted[0] ?? NaN,
    most: sorted.at(-1) ?? NaN,
  };
}

/** What is measured, with the unit in which the table shows it. */
export const FIGURES = {
  rate: 'creations/s',
  plants: 'plants/s',
  cpu: 'CPU, µs',
  p50: 'median latency, ms',
  start: 'start, ms',
  rest: 'memory at rest, MiB',
  peak: 'memory at most, MiB',
} as const;

export type Figure = keyof typeof FIGURES;

/** What one turn measured. */
export type Turn = Readonly<Partial<Record<Figure, number>>>;

/** Something that is measured, in turns with others. */
export interface Subject {
  readonly name: string;
  /** Takes one turn. */
  turn(): Promise<Turn>;
  /** How many turns it takes before the first that counts; 0 without it. */
  readonly warmUps?: number;
}

/** The turns of the subjects of a group. */
export type Turns = ReadonlyMap<string, readonly Turn[]>;

/**
 * Has subjects take turns. A machine that is shared varies by half from minute to minute, the ratio of
 * two turns that follow each other by little.
 */
export async function takeTurns(subjects: readonly Subject[], rounds: number): Promise<Turns> {
  const turns = new Map<string, Turn[]>();
  for (const subject of subjects) {
    for (let time = 0; time < (subject.warmUps ?? 0); time++) await subject.turn();
  }
  for (let round = 0; round < rounds; round++) {
    for (const subject of subjects) {
      turns.set(subject.name, [...(turns.get(subject.name) ?? []), await subject.turn()]);
    }
  }
  return turns;
}

/** Two subjects of a group, compared. */
export interface Comparison {
  readonly figure: Figure;
  readonly ours: string;
  readonly theirs: string;
  /** The ratio of the turns of each round. */
  readonly ratio: Spread;
  /** The medians of this run. */
  readonly absolute: readonly [ours: number, theirs: number];
  /** What the project wants, if it wants anything. */
  readonly wanted: string;
}

/** Compares two subjects; undefined where one of them was not measured. */
export function compare(
  turns: Turns,
  figure: Figure,
  ours: string,
  theirs: string,
  wanted = '',
): Comparison | undefined {
  const [a, b] = [ours, theirs].map((name) =>
    (turns.get(name) ?? []).flatMap((turn) => turn[figure] ?? []),
  ) as [number[], number[]];
  if (a.length === 0 || a.length !== b.length) return undefined;
  const ratio = spreadOf(a.map((value, round) => value / (b[round] ?? NaN)));
  return {
    figure,
    ours,
    theirs,
    ratio,
    absolute: [spreadOf(a).median, spreadOf(b).median],
    wanted,
  };
}
