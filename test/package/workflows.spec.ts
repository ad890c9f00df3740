import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { load } from 'js-yaml';

const FOLDER = join(__dirname, '../../.github/workflows');

interface Step {
  readonly uses?: string;
  readonly with?: Readonly<Record<string, unknown>>;
  readonly run?: string;
}

interface Workflow {
  readonly permissions?: object;
  readonly jobs: Readonly<Record<string, { readonly steps: readonly Step[] }>>;
}

/** Checks against the most common mistakes that let others run code or steal a token. */
describe.each(globSync('*.yml', { cwd: FOLDER }).map((file) => [basename(file)]))('%s', (file) => {
  const { permissions, jobs } = load(readFileSync(join(FOLDER, file), 'utf8')) as Workflow;
  const steps = Object.values(jobs).flatMap((job) => job.steps);

  it('has only read permission by default', () => {
    expect(permissions).toEqual({ contents: 'read' });
  });

  it('pins each action to a commit', () => {
    const uses = steps.flatMap((step) => step.uses ?? []);

    expect(uses.filter((each) => !/@[0-9a-f]{40}$/.test(each))).toEqual([]);
  });

  it('keeps no token in a checkout', () => {
    for (const step of steps.filter(({ uses }) => uses?.startsWith('actions/checkout@'))) {
      expect(step.with).toMatchObject({ 'persist-credentials': false });
    }
  });

  it('contains no expression in a script except values of the matrix', () => {
    const expressions = steps.flatMap(({ run = '' }) => run.match(/\$\{\{.*?\}\}/g) ?? []);

    expect(expressions.filter((each) => !/^\$\{\{ matrix\.\w+ \}\}$/.test(each))).toEqual([]);
  });
});
