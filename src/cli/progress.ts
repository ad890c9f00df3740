/**
 * Shows on standard error how many plants a command has processed. On a terminal, this is one line, which the next
 * output overwrites. Elsewhere, it is a line every ten seconds.
 */
export class Progress {
  private readonly isTerminal = process.stderr.isTTY;
  /** On a terminal, the progress is shown immediately. */
  private shownAt = this.isTerminal ? -Infinity : performance.now();

  show(plants: number): void {
    const now = performance.now();
    if (now - this.shownAt < (this.isTerminal ? 200 : 10_000)) return;
    this.shownAt = now;
    process.stderr.write(`${plants.toLocaleString('en')} plants${this.isTerminal ? '\r' : '\n'}`);
  }
}
