import { testHosts } from './expect-host';
import type { HostKind } from './hosts';

/** Every host of the table in docs/support.md. */

const nests = [11, 12] as const;
const platforms = ['express', 'fastify'] as const;
const moduleSystems = ['cjs', 'mjs'] as const;
/** The oldest that the module takes, and the lines between it and the current one. */
const OLDER = ['22.16.0', '24.16.0'];

testHosts(
  nests.flatMap((nest) =>
    platforms.flatMap((platform) =>
      moduleSystems.flatMap((modules): HostKind[] => [
        { nest, platform, modules },
        ...(modules === (nest === 11 ? 'cjs' : 'mjs')
          ? OLDER.map((node) => ({ nest, platform, modules, node }))
          : []),
      ]),
    ),
  ),
);
