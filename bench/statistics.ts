/** The median, minimum and maximum of some numbers. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export function spreadOf(numbers: readonly number[]): Spread {
  const sorted = numbers.toSorted((a, b) => a - b);
  return {
    median: sorted[sorted.length >> 1] ?? NaN,
    min: sorted[0] ?? NaN,
    max: sorted.at(-1) ?? NaN,
  };
}

/** The measured quantities, with the names and units that the table shows. */
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

/** The results of one turn. */
export type Turn = Readonly<Partial<Record<Figure, number>>>;

/** Something that is measured in turns with others. */
export interface Subject {
  readonly name: string;
  /** Takes one turn. */
  turn(): Promise<Turn>;
  /** The number of turns before the first measured one. @default 0 */
  readonly warmUps?: number;
}

/** The turns of each subject of a group, by name. */
export type Turns = ReadonlyMap<string, readonly Turn[]>;

/**
 * Runs the subjects in alternating turns. On a shared machine, results vary by half from minute to minute,
 * but the ratio of two consecutive turns varies little.
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

/** A comparison of two subjects of a group. */
export interface Comparison {
  readonly figure: Figure;
  readonly ours: string;
  readonly theirs: string;
  /** The ratio of the two turns of each round. */
  readonly ratio: Spread;
  /** The medians of this run. */
  readonly absolute: readonly [ours: number, theirs: number];
  /** The target of the project; empty if it has none. */
  readonly target: string;
}

/** Compares two subjects. Returns undefined if one of them was not measured. */
export function compare(
  turns: Turns,
  figure: Figure,
  ours: string,
  theirs: string,
  target = '',
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
    target,
  };
}
