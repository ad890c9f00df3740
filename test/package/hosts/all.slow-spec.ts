/** Runs the module in every host that docs/support.md lists. Needs an npm registry, and takes many minutes. */
import { engines } from '../../../src/plants/package.json';
import { testHosts } from './expect-host';
import type { HostKind } from './hosts';

/** The oldest supported version of each Node.js line. */
const OLDEST_VERSIONS = engines.node.match(/[\d.]+/g) ?? [];

/** Every host in the list of docs/support.md. */
const kinds: HostKind[] = [];
for (const nest of [11, 12] as const) {
  kinds.push({ nest, platform: 'express', build: 'rspack' });
  for (const platform of ['express', 'fastify'] as const) {
    kinds.push({ nest, platform, build: 'cjs' }, { nest, platform, build: 'mjs' });
    const build = nest === 11 ? 'cjs' : 'mjs';
    kinds.push(...OLDEST_VERSIONS.map((node) => ({ nest, platform, build, node }) as const));
  }
}

testHosts(kinds);
