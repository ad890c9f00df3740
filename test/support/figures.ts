/** Prints what a test of faults measured, past Jest, which would decorate it. */
export function printFigures(title: string, figures: object): void {
  const lines = Object.entries(figures).map(([name, value]) => `  ${name}: ${String(value)}\n`);
  process.stdout.write(`\n${title}\n${lines.join('')}`);
}

/** The value below which a share of the values lie; NaN when there are none. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}
