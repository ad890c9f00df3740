import { loadavg } from 'node:os';

/** The median, minimum and maximum of some numbers. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export function spreadOf(numbers: readonly number[]): Spread {
  const sorted = numbers.toSorted((a, b) => a - b);
  const at = (index: number): number => sorted[index] ?? NaN;
  return {
    median: (at((sorted.length - 1) >> 1) + at(sorted.length >> 1)) / 2,
    min: at(0),
    max: at(sorted.length - 1),
  };
}

/** The measured quantities, with the names and units that the tables show. */
export const FIGURES = {
  rate: 'plants/s',
  cpu: 'CPU per request, µs',
  p50: 'p50, ms',
  p99: 'p99, ms',
  p999: 'p99.9, ms',
  start: 'start, ms',
  rest: 'memory at rest, MiB',
  peak: 'memory at most, MiB',
  /** The load average of the machine in the minute before the turn. */
  load: 'load average',
} as const;

export type Figure = keyof typeof FIGURES;

/** The results of one turn. */
export type Turn = Readonly<Partial<Record<Figure, number>>>;

/** Something that is measured in turns with others. */
export interface Subject {
  readonly name: string;
  /** Takes one turn. */
  turn(): Promise<Turn>;
  /** The name of the subject that it is compared with. @default the first subject of the group */
  readonly reference?: string;
}

/** A subject with the results of its turns. */
export interface Measured {
  readonly name: string;
  readonly reference?: string | undefined;
  readonly turns: readonly Turn[];
}

/**
 * Runs the subjects in alternating turns. On a shared machine, results vary by half from minute to minute,
 * but the ratio of two consecutive turns varies little.
 */
export async function takeTurns(
  subjects: readonly Subject[],
  rounds: number,
): Promise<readonly Measured[]> {
  const turns = new Map<Subject, Turn[]>(subjects.map((subject) => [subject, []]));
  for (let round = 0; round < rounds; round++) {
    for (const [subject, results] of turns) {
      results.push({ load: loadavg()[0], ...(await subject.turn()) });
    }
  }
  return subjects.map((subject) => ({
    name: subject.name,
    reference: subject.reference,
    turns: turns.get(subject) ?? [],
  }));
}

/** Returns the values of a figure, one per turn. */
export function valuesOf({ turns }: Measured, figure: Figure): number[] {
  return turns.map((turn) => turn[figure] ?? NaN);
}

/** Divides the values of two subjects, turn by turn. */
export function ratioOf(dividend: Measured, divisor: Measured, figure: Figure): Spread {
  const divisors = valuesOf(divisor, figure);
  return spreadOf(valuesOf(dividend, figure).map((value, at) => value / (divisors[at] ?? NaN)));
}
