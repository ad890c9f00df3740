import { engines } from '../../../src/plants/package.json';
import { testHosts } from './expect-host';
import type { HostKind } from './hosts';

/** The oldest of each line that the module promises. */
const OLDER = engines.node.match(/[\d.]+/g) ?? [];

/** Every host of the list in docs/support.md. */
const kinds: HostKind[] = [];
for (const nest of [11, 12] as const) {
  kinds.push({ nest, platform: 'express', build: 'rspack' });
  for (const platform of ['express', 'fastify'] as const) {
    kinds.push({ nest, platform, build: 'cjs' }, { nest, platform, build: 'mjs' });
    const build = nest === 11 ? 'cjs' : 'mjs';
    kinds.push(...OLDER.map((node) => ({ nest, platform, build, node }) as const));
  }
}

testHosts(kinds);
