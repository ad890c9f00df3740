/** Upper bounds of the buckets, in seconds. */
export const durationBuckets = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
] as const;

/**
 * A histogram of durations with the buckets {@link durationBuckets}. Each request is observed, and
 * prom-client's histogram with labels takes ten times as long.
 */
export class DurationSeries {
  /** The count of each bucket; the last one is for durations above all bounds. */
  private readonly counts = new Float64Array(durationBuckets.length + 1);
  private sum = 0;

  /** @param seconds 0 or more */
  observe(seconds: number): void {
    let bucket = 0;
    while (seconds > (durationBuckets[bucket] ?? Infinity)) bucket++;
    this.counts[bucket] = (this.counts[bucket] ?? 0) + 1;
    this.sum += seconds;
  }

  /** How many durations were observed. */
  get count(): number {
    return this.counts.reduce((sum, count) => sum + count, 0);
  }

  /** The samples of the Prometheus histogram `name` with these labels. */
  samples(name: string, labels: Record<string, string>): Sample[] {
    let count = 0;
    const buckets = [...this.counts].map((inBucket, at) => ({
      metricName: `${name}_bucket`,
      labels: { ...labels, le: String(durationBuckets[at] ?? '+Inf') },
      value: (count += inBucket),
    }));
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: this.sum },
      { metricName: `${name}_count`, labels, value: count },
    ];
  }
}

/** One line of the Prometheus text format. */
export interface Sample {
  readonly metricName: string;
  readonly labels: Record<string, string>;
  readonly value: number;
}
