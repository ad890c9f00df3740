import { readFileSync } from 'node:fs';
import { renderPages } from '../../bench/page';

describe('the pages about performance', () => {
  it.each([...renderPages()])('shows in %s what docs/performance.csv contains', (path, text) => {
    expect(readFileSync(path, 'utf8')).toBe(text);
  });
});
