import { testHosts } from './expect-host';
import type { HostKind } from './hosts';

/** The oldest that the module takes, and the lines between it and the current one. */
const OLDER = ['22.22.3', '24.15.0'];

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
