import { engines } from '../../../src/plants/package.json';
import { testHosts } from './expect-host';
import type { HostKind } from './hosts';

/** The oldest of each line that the module promises. */
const OLDER = engines.node.match(/[\d.]+/g) ?? [];

/** Every host of the list in docs/support.md. */
const current = ([11, 12] as const).flatMap((nest) =>
  (['express', 'fastify'] as const).flatMap((platform) =>
    (['cjs', 'mjs'] as const).map((modules): HostKind => ({ nest, platform, modules })),
  ),
);
const older = current
  .filter(({ nest, modules }) => modules === (nest === 11 ? 'cjs' : 'mjs'))
  .flatMap((kind) => OLDER.map((node) => ({ ...kind, node })));

testHosts([...current, ...older]);
