/**
 * Shows on the standard error how far a command is: in one line that changes on a terminal, in one
 * line every ten seconds elsewhere.
 */
export class Progress {
  private readonly begin = performance.now();
  private readonly isTerminal = process.stderr.isTTY;
  /** On a terminal the progress is shown at once, because somebody waits. */
  private shownAt = this.isTerminal ? -Infinity : this.begin;

  /** @param unit what is counted, for example `plants` */
  constructor(private readonly unit: string) {}

  /** @param share of the whole that is done, from 0 to 1; undefined when that is not known */
  show(done: number, share = 0): void {
    const now = performance.now();
    if (now - this.shownAt < (this.isTerminal ? 200 : 10_000)) return;
    this.shownAt = now;
    const seconds = (now - this.begin) / 1000;
    const parts = [`${format(done)} ${this.unit}`, `${format(done / seconds)}/s`];
    if (share > 0 && share <= 1) parts.push(`${format((seconds / share) * (1 - share))} s left`);
    this.clear();
    process.stderr.write(`${parts.join(', ')}${this.isTerminal ? '' : '\n'}`);
  }

  /** Prints a line in the place of what is shown. */
  print(line: string): void {
    this.clear();
    console.error(line);
  }

  /** Takes the line away from a terminal. */
  clear(): void {
    if (this.isTerminal) process.stderr.write('\r\u001b[2K');
  }
}

function format(number: number): string {
  return Math.round(number).toLocaleString('en');
}
