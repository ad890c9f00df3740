/**
 * Shows the progress of a command on standard error. On a terminal, updates one line. Elsewhere, prints a line
 * every ten seconds.
 */
export class Progress {
  private readonly startedAt = performance.now();
  private readonly isTerminal = process.stderr.isTTY;
  /** On a terminal, the progress is shown immediately. */
  private shownAt = this.isTerminal ? -Infinity : this.startedAt;

  /** @param unit the unit of the progress, for example `plants` */
  constructor(private readonly unit: string) {}

  /** @param fraction the part of the whole that is done, from 0 to 1; undefined if it is unknown */
  show(done: number, fraction = 0): void {
    const now = performance.now();
    if (now - this.shownAt < (this.isTerminal ? 200 : 10_000)) return;
    this.shownAt = now;
    const seconds = (now - this.startedAt) / 1000;
    const parts = [`${formatNumber(done)} ${this.unit}`, `${formatNumber(done / seconds)}/s`];
    if (fraction > 0 && fraction <= 1) {
      parts.push(`${formatNumber((seconds / fraction) * (1 - fraction))} s left`);
    }
    this.clear();
    process.stderr.write(`${parts.join(', ')}${this.isTerminal ? '' : '\n'}`);
  }

  /** Prints a line in place of the progress. */
  print(line: string): void {
    this.clear();
    console.error(line);
  }

  /** Clears the progress line on a terminal. */
  clear(): void {
    if (this.isTerminal) process.stderr.write('\r\u001b[2K');
  }
}

function formatNumber(number: number): string {
  return Math.round(number).toLocaleString('en');
}
