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

/**
 * The ratios of neighbouring rounds. A machine that is shared varies by half from minute to minute,
 * the ratio of two rounds that follow each other by little.
 */
export function ratiosOf(rounds: readonly number[], others: readonly number[]): Spread {
  return spreadOf(rounds.map((value, round) => value / (others[round] ?? NaN)));
}
