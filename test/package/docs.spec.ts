/** Compares facts on the pages with the code: links, versions, variables, scopes. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { version } from '../../package.json';
import { SCOPES } from '../../src/plants/auth/scopes';
import { AUTH, VARIABLES } from '../../src/server/settings/variables';

const ROOT = join(__dirname, '../..');

const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');

/** The pages of the repository by path, without their code blocks. */
const pages = new Map(
  globSync(['*.md', 'docs/**/*.md'], { cwd: ROOT }).map((path) => [
    path,
    read(path).replaceAll(/^```[^]*?^```/gm, ''),
  ]),
);

/** Finds the relative links of a page, with their anchors. */
function findLinks(text: string): string[] {
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target));
}

/** Finds the anchors that GitHub generates for the headings of a page. */
function findAnchors(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

describe('the documentation', () => {
  it.each([...pages.keys()])('contains only working links in %s', (page) => {
    const broken = findLinks(pages.get(page) ?? '').filter((link) => {
      const [path = '', anchor] = link.split('#');
      const target = path === '' ? page : relative('', join(dirname(page), path));
      if (!existsSync(join(ROOT, target))) return true;
      return anchor !== undefined && !findAnchors(pages.get(target) ?? '').includes(anchor);
    });

    expect(broken).toEqual([]);
  });

  it('is in each package, with the version and license of the service', () => {
    for (const folder of ['src/plants', 'src/client']) {
      expect(JSON.parse(read(`${folder}/package.json`))).toMatchObject({ version });
      expect(read(`${folder}/LICENSE`)).toBe(read('LICENSE'));
    }
  });

  it('lists every scope in docs/tokens.md with its variable', () => {
    const page = pages.get('docs/tokens.md') ?? '';
    const rows = page.matchAll(/^\| `(scope=\w+)` +\| (.+?) +\| `([A-Z_]+)` +\|$/gm);
    const shown = Array.from(rows, ([, ...cells]) => cells);

    const expected = Object.entries(SCOPES).map(([scope, { option, description }]) => [
      `scope=${scope}`,
      description.replace(/\/\w+/, '`$&`'),
      AUTH[option].name,
    ]);
    expect(shown).toEqual(expected);
  });

  it('lists every variable in docs/configuration.md with its default', () => {
    const page = pages.get('docs/configuration.md') ?? '';
    const rows = page.matchAll(/^\| `([A-Z_]+)` +\|[^|]*\| (\S+) +\|/gm);
    const shown = Array.from(rows, ([, ...cells]) => cells);

    const expected = VARIABLES.map(({ name, fallback }) => [
      name,
      fallback ? `\`${fallback}\`` : 'none',
    ]);
    expect(shown.sort()).toEqual(expected.sort());
  });
});
