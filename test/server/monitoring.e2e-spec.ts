/** Compares the alert rules and the dashboard with the metrics of the service. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { AUTHORIZED, TestApplication } from '../support/application';

const FOLDER = join(__dirname, '../../docs/monitoring');

const alerts = readFileSync(join(FOLDER, 'alerts.yml'), 'utf8');
const { groups } = load(alerts) as {
  groups: { rules: { alert: string; expr: string }[] }[];
};
const { panels } = JSON.parse(readFileSync(join(FOLDER, 'dashboard.json'), 'utf8')) as {
  panels: { title: string; targets: { expr: string }[] }[];
};

/** Each expression with the name of its rule or panel. */
const expressions = [
  ...groups.flatMap(({ rules }) => rules.map(({ alert, expr }) => [alert, expr] as const)),
  ...panels.flatMap(({ title, targets }) =>
    targets.map(({ expr }) => [title, expr.replaceAll('$__rate_interval', '5m')] as const),
  ),
];

/** The labels that Prometheus adds to every scraped metric. */
const SCRAPED = ['job', 'instance'];

describe('alert rules and dashboard', () => {
  /** The metrics as the service exports them. */
  let metrics: string;
  beforeAll(async () => {
    const issuer = { AUTH_ISSUER: 'http://127.0.0.1:2', AUTH_AUDIENCE: 'plants' };
    const application = await TestApplication.start(issuer);
    await application.post('{"id":1,"name":"Fern"}');
    const { body } = await application.app.inject({ url: '/metrics', headers: AUTHORIZED });
    // The metric `up` comes from Prometheus itself.
    metrics = `up 1\n${body}`;
    await application.stop();
  });

  it('refer to existing sections of the documentation', () => {
    const named = [...alerts.matchAll(/\((docs\/\w+\.md), ([^)]+)\)/g)];

    expect(named).not.toEqual([]);
    for (const [, page = '', section = ''] of named) {
      expect(readFileSync(join(FOLDER, '../..', page), 'utf8')).toContain(`\n## ${section}\n`);
    }
  });

  it.each(expressions)('use existing metrics: %s', (_name, expression) => {
    expect(findUnknownNames(expression, metrics)).toEqual([]);
  });
});

/**
 * Finds the metrics, labels and label values in an expression that do not exist. `promtool` checks the rules
 * themselves.
 */
function findUnknownNames(expression: string, metrics: string): string[] {
  const hasLine = (start: string) => new RegExp(`^${start}`, 'm').test(metrics);
  const selectors = expression.matchAll(/\b(up|(?!histogram_quantile)[a-z]+_\w+)(?:{(.*?)})?/g);
  return [...selectors].flatMap(([, metric = '', matchers = '']) => {
    if (!hasLine(`${metric}[{ ]`)) return [`no ${metric}`];
    return [...matchers.matchAll(/(\w+)[!=~]+"(.*?)"/g)].flatMap(
      ([matcher, label = '', value = '']) => {
        const needed = /\W/.test(value) ? `${label}="` : `${label}="${value}"`;
        const isKnown = SCRAPED.includes(label) || hasLine(`${metric}\\{.*\\b${needed}`);
        return isKnown ? [] : [`no ${metric}{${matcher}}`];
      },
    );
  });
}
