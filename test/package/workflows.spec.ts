import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const FOLDER = join(__dirname, '../../.github/workflows');

/** Checks against common mistakes that let others run code or steal a token. CodeQL finds expressions in scripts. */
describe.each(globSync('*.yml', { cwd: FOLDER }).map((file) => [basename(file)]))('%s', (file) => {
  const text = readFileSync(join(FOLDER, file), 'utf8');
  const count = (pattern: RegExp) => [...text.matchAll(pattern)].length;

  it('has only read permission by default', () => {
    expect(text).toMatch(/^permissions:\n {2}contents: read\n\S/m);
  });

  it('pins each action to a commit, and keeps no token in a checkout', () => {
    expect(count(/\buses: \S+@[0-9a-f]{40}\b/g)).toBe(count(/\buses:/g));
    expect(count(/persist-credentials: false/g)).toBe(count(/actions\/checkout@/g));
  });
});
