import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parser } from '@prometheus-io/lezer-promql';
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

describe('the picture of the dashboard', () => {
  it('shows each panel', () => {
    const picture = readFileSync(join(FOLDER, 'dashboard.svg'), 'utf8');

    for (const { title } of panels) expect(picture).toContain(`>${title}</text>`);
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

/** What is wrong with an expression: a syntax error, or a metric, label or value that does not exist. */
function faultsOf(expression: string, metrics: Metrics): string[] {
  const faults: string[] = [];
  const labels = new Set(SCRAPED);
  const groupings: string[] = [];
  let metric = '';
  let label = '';
  const cursor = parser.parse(expression).cursor();
  do {
    const text = expression.slice(cursor.from, cursor.to);
    const values = metrics.get(metric)?.get(label);
    if (cursor.type.isError) return ['not PromQL'];
    if (cursor.name === 'Identifier') {
      metric = text;
      for (const name of metrics.get(metric)?.keys() ?? []) labels.add(name);
      if (!metrics.has(metric)) faults.push(`no ${metric}`);
    } else if (cursor.name === 'LabelName' && cursor.node.parent?.name === 'GroupingLabels') {
      groupings.push(text);
    } else if (cursor.name === 'LabelName') {
      label = text;
      if (!SCRAPED.includes(label) && !metrics.get(metric)?.has(label)) {
        faults.push(`no ${metric}{${label}}`);
      }
    } else if (cursor.name === 'StringLiteral' && values?.has(text.slice(1, -1)) === false) {
      faults.push(`no ${metric}{${label}=${text}}`);
    }
  } while (cursor.next());
  return [
    ...faults,
    ...groupings.filter((name) => !labels.has(name)).map((name) => `nothing with ${name}`),
  ];
}
