import { engines } from '../../../src/plants/package.json';
import { testHosts } from './expect-host';
import type { HostKind } from './hosts';

/** The oldest of each line that the module promises. */
const OLDER = engines.node.match(/[\d.]+/g) ?? [];

/** Every host of the list in docs/support.md. */
const current = ([11, 12] as const).flatMap((nest) =>
  (['express', 'fastify'] as const).flatMap((platform) =>
    (['cjs', 'mjs'] as const).map((build): HostKind => ({ nest, platform, build })),
  ),
);
const older = current
  .filter(({ nest, build }) => build === (nest === 11 ? 'cjs' : 'mjs'))
  .flatMap((kind) => OLDER.map((node) => ({ ...kind, node })));

const bundled = ([11, 12] as const).map((nest): HostKind => ({
  nest,
  platform: 'express',
  build: 'rspack',
}));

testHosts([...current, ...older, ...bundled]);
