/** One value of a metric, with its labels. */
export interface Value {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** All metrics at one time, in seconds. */
export interface Sample {
  readonly time: number;
  readonly series: ReadonlyMap<string, readonly Value[]>;
}

/** Over how many samples a rate is taken. */
const RATE_INTERVAL = 4;

/** Reads the text format of Prometheus, as an instance would be scraped. */
export function parseMetrics(text: string, instance: string): Sample['series'] {
  const series = new Map<string, Value[]>();
  for (const [, name = '', labels = '', value] of text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)) {
    const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(
      ([, key = '', of = '']): [string, string] => [key, of],
    );
    const values = series.get(name) ?? [];
    values.push({
      labels: { ...Object.fromEntries<string>(pairs), instance },
      value: Number(value),
    });
    series.set(name, values);
  }
  return series;
}

/**
 * Evaluates an expression at the last of some samples. It knows the part of PromQL that our dashboard
 * uses.
 *
 * @throws Error for any other expression
 */
export function evaluate(expression: string, samples: readonly Sample[]): Value[] {
  const match = (pattern: RegExp): string[] | undefined => pattern.exec(expression)?.slice(1);
  let parts: string[] | undefined;
  if ((parts = match(/^(.*) > 0$/))) {
    return evaluate(parts[0] ?? '', samples).filter(({ value }) => value > 0);
  }
  if ((parts = match(/^(sum\(.*\)) \/ (sum\(.*\))$/))) {
    const [a, b] = parts.map((part) => evaluate(part, samples)[0]?.value ?? NaN);
    const value = (a ?? NaN) / (b ?? NaN);
    return Number.isFinite(value) ? [{ labels: {}, value }] : [];
  }
  if ((parts = match(/^histogram_quantile\(([\d.]+), (.*)\)$/))) {
    return quantile(Number(parts[0]), evaluate(parts[1] ?? '', samples));
  }
  if ((parts = match(/^sum(?: by \((\w+)\) )?\((.*)\)$/))) {
    const [label] = parts;
    const groups = Map.groupBy(evaluate(parts[1] ?? '', samples), ({ labels }) =>
      label === undefined ? '' : labels[label],
    );
    return [...groups].map(([name, values]) => ({
      labels: label === undefined ? {} : { [label]: name ?? '' },
      value: values.reduce((total, { value }) => total + value, 0),
    }));
  }
  if ((parts = match(/^rate\((.*)\[\$__rate_interval\]\)$/))) {
    return rate(parts[0] ?? '', samples);
  }
  if ((parts = match(/^(\w+)\{(.*)\}$/))) {
    const wanted = [...(parts[1] ?? '').matchAll(/(\w+)="([^"]*)"/g)];
    return (samples.at(-1)?.series.get(parts[0] ?? '') ?? []).filter(({ labels }) =>
      wanted.every(([, label = '', value]) => labels[label] === value),
    );
  }
  throw new Error(`Not among the expressions that are known here: ${expression}`);
}

function rate(selector: string, samples: readonly Sample[]): Value[] {
  const [from, to] = [samples.at(-1 - RATE_INTERVAL), samples.at(-1)];
  if (!from || !to) return [];
  const before = evaluate(selector, [from]);
  return evaluate(selector, [to]).map(({ labels, value }) => {
    const key = JSON.stringify(labels);
    const earlier = before.find((each) => JSON.stringify(each.labels) === key)?.value ?? 0;
    return { labels, value: (value - earlier) / (to.time - from.time) };
  });
}

/** As Prometheus does: linear within a bucket. */
function quantile(share: number, buckets: readonly Value[]): Value[] {
  const sorted = buckets
    .map(({ labels, value }) => ({
      bound: Number((labels.le ?? '').replace('+Inf', 'Infinity')),
      value,
    }))
    .sort((a, b) => a.bound - b.bound);
  const rank = share * (sorted.at(-1)?.value ?? 0);
  if (!(rank > 0)) return [];
  const at = sorted.findIndex(({ value }) => value >= rank);
  const [low, high] = [sorted[at - 1] ?? { bound: 0, value: 0 }, sorted[at]];
  if (!high) return [];
  if (high.bound === Infinity) return [{ labels: {}, value: low.bound }];
  const value =
    low.bound + ((high.bound - low.bound) * (rank - low.value)) / (high.value - low.value);
  return [{ labels: {}, value }];
}
