import { plantStoreIn } from './contestants';
import type { Databases } from './databases';
import { formatNumber, formatSpread } from './report';
import { type Figure, FIGURES, ratioOf, spreadOf, valuesOf } from './statistics';
import { loadTogether, type SharedLoad } from './together';

/** The rate of create requests, as a fraction of that of an older build, below which a change is too slow. */
const MIN_RATIO = 0.9;

const COMPARED: readonly Figure[] = ['cpu', 'rate', 'p50', 'p99'];

export interface Comparison extends SharedLoad {
  /** The folder of the other build. */
  readonly other: string;
  readonly store: 'sqlite' | 'postgres';
}

/**
 * Compares create requests with those of another build. Both builds get the same load at the same moment.
 * Prints the medians and the ratios of the turns. The exit code is 1 if the rate is below {@link MIN_RATIO} of
 * that of the other build.
 */
export async function compareBuilds(comparison: Comparison, databases: Databases): Promise<void> {
  const { other, store, connections, starts, rounds, duration } = comparison;
  const contestants = [plantStoreIn('.', store), plantStoreIn(other, store, other)];
  const measured = await loadTogether(contestants, databases, comparison);
  console.log(
    `${store}, ${starts} starts with ${rounds} turns of ${duration} s per number of connections, Node.js ${process.version}\n\n` +
      `|connections|figure|this build|${other}|this ÷ other (min–max)|\n|---:|---|---:|---:|---:|`,
  );
  for (const [at, [ours, theirs]] of measured.entries()) {
    if (!ours || !theirs) continue;
    for (const figure of COMPARED) {
      const medians = [ours, theirs].map((each) =>
        formatNumber(spreadOf(valuesOf(each, figure)).median),
      );
      const ratio = formatSpread(ratioOf(ours, theirs, figure));
      console.log(`|${connections[at]}|${FIGURES[figure]}|${medians.join('|')}|${ratio}|`);
    }
    if (ratioOf(ours, theirs, 'rate').median >= MIN_RATIO) continue;
    console.error(`The rate of create requests is below ${MIN_RATIO} of that in ${other}.`);
    process.exitCode = 1;
  }
}
