import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { TestApplication, TOKEN } from '../support/application';

const FOLDER = join(__dirname, '../../docs/monitoring');

const alerts = readFileSync(join(FOLDER, 'alerts.yml'), 'utf8');
const { groups } = load(alerts) as {
  groups: { rules: { alert: string; expr: string }[] }[];
};
const { panels, editable, templating } = JSON.parse(
  readFileSync(join(FOLDER, 'dashboard.json'), 'utf8'),
) as {
  panels: { title: string; description?: string; targets: { expr: string }[] }[];
  editable: boolean;
  templating: { list: { name: string; query: string }[] };
};

/** Each expression with the name of its rule or panel. */
const expressions = [
  ...groups.flatMap(({ rules }) => rules.map(({ alert, expr }) => [alert, expr] as const)),
  ...panels.flatMap(({ title, targets }) =>
    targets.map(({ expr }) => [title, expr.replaceAll('$__rate_interval', '5m')] as const),
  ),
];

/** The values of each label of each metric. */
type Metrics = ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>>;

/** Labels that Prometheus adds to everything it scrapes. */
const SCRAPED = ['job', 'instance'];

describe('alert rules and dashboard', () => {
  let text: string;
  let metrics: Metrics;
  beforeAll(async () => {
    const application = await TestApplication.start();
    await application.post('{"id":1,"name":"Fern"}');
    const headers = { authorization: `Bearer ${TOKEN}` };
    text = (await application.app.inject({ url: '/metrics', headers })).body;
    // The metric `up` comes from Prometheus itself.
    metrics = new Map([['up', new Map()], ...readMetrics(text)]);
    await application.stop();
  });

  // Most of the rules of `promtool check metrics`, which ends with 0 for them.
  it('have metrics whose names follow the rules of Prometheus', () => {
    const types = [...text.matchAll(/^# TYPE (\S+) (\w+)$/gm)].map(([, ...each]) => each);
    const misnamed = types.filter(([name = '', type = '']) => {
      const isTotal = name.endsWith('_total');
      const isPlain = /^[a-z]+(_[a-z0-9]+)*$/.test(name) && !name.split('_').includes(type);
      return isTotal !== (type === 'counter') || !isPlain || !text.includes(`# HELP ${name} `);
    });

    expect(types.length).toBeGreaterThan(30);
    expect(misnamed).toEqual([]);
  });

  it('name sections that the pages have', () => {
    const named = [...alerts.matchAll(/\((docs\/\w+\.md), ([^)]+)\)/g)];

    expect(named).not.toEqual([]);
    for (const [, page = '', section = ''] of named) {
      expect(readFileSync(join(FOLDER, '../..', page), 'utf8')).toContain(`\n## ${section}\n`);
    }
  });

  it('select by job and instance, on panels that say what they show', () => {
    const [, job, instance] = templating.list;

    expect([editable, job?.name, instance?.query]).toEqual([
      false,
      'job',
      'label_values(plant_store_ready{job=~"$job"}, instance)',
    ]);
    expect(panels.filter(({ description = '' }) => description === '')).toEqual([]);
    for (const { expr } of panels.flatMap(({ targets }) => targets)) {
      expect(expr).not.toMatch(/{(?!job=~"\$job", instance=~"\$instance")/);
    }
  });

  it.each(expressions)('use metrics that the service has: %s', (_name, expression) => {
    expect(faultsOf(expression, metrics)).toEqual([]);
  });
});

function readMetrics(text: string): Metrics {
  const metrics = new Map<string, Map<string, Set<string>>>();
  for (const [, name = '', labels = ''] of text.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)) {
    const values = metrics.get(name) ?? new Map<string, Set<string>>();
    metrics.set(name, values);
    for (const [, label = '', value = ''] of labels.matchAll(/(\w+)="([^"]*)"/g)) {
      values.set(label, (values.get(label) ?? new Set()).add(value));
    }
  }
  return metrics;
}

/**
 * The metrics, labels and values in an expression that do not exist. `promtool` checks the rules
 * themselves.
 */
function faultsOf(expression: string, metrics: Metrics): string[] {
  const selectors = expression.matchAll(
    /\b(up|(?:plant_store|http|nodejs|process)_\w+)(?:{(.*?)})?/g,
  );
  return [...selectors].flatMap(([, metric = '', matchers = '']) => {
    const labels = metrics.get(metric);
    if (labels === undefined) return [`no ${metric}`];
    return [...matchers.matchAll(/(\w+)([!=~]+)"(.*?)"/g)].flatMap(
      ([matcher, label = '', , value = '']) => {
        if (SCRAPED.includes(label)) return [];
        const values = labels.get(label);
        const isKnown = values && (/\W/.test(value) || values.has(value));
        return isKnown ? [] : [`no ${metric}{${matcher}}`];
      },
    );
  });
}
