import { globSync, readFileSync } from 'node:fs';

/** Returns the number of lines of the files, without specs. */
function countLines(patterns: readonly string[]): number {
  const files = globSync(patterns.map((pattern) => `src/${pattern}`));
  const sources = files.filter((file) => /(?<!spec)\.m?ts$/.test(file));
  return sources.reduce((sum, file) => sum + readFileSync(file, 'utf8').split('\n').length - 1, 0);
}

/** The rows of the table "What each promise costs": the promise, the patterns of its files, and its lines. */
const [, section = ''] = readFileSync('CONTRIBUTING.md', 'utf8').split(
  '## What each promise costs',
);
const rows = section
  .split('\n## ', 1)[0]
  ?.split('\n')
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .filter(([, , files = '']) => files.startsWith('`'))
  .map(([, promise = '', files = '', lines]): [string, string[], number] => [
    promise,
    [...files.matchAll(/`([^`]+)`/g)].map(([, pattern = '']) => pattern),
    Number(lines),
  ]);

describe('CONTRIBUTING.md', () => {
  it.each(rows ?? [])('states the files and rounded lines of %s', (_promise, patterns, lines) => {
    for (const pattern of patterns) expect(globSync(`src/${pattern}`)).not.toEqual([]);
    const actual = countLines(patterns);
    expect(Math.abs(lines - actual)).toBeLessThanOrEqual(Math.max(10, actual / 10));
  });

  it('states the lines of src to a hundredth', () => {
    const [, total = ''] = /`src` has ([\d,]+) lines/.exec(section) ?? [];

    const actual = countLines(['**']);
    expect(Math.abs(Number(total.replace(',', '')) - actual)).toBeLessThanOrEqual(actual / 100);
  });
});
