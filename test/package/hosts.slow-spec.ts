/** Tests one of the hosts of `npm run test:hosts` on the oldest version of each Node.js line. `npm test` does not run it: it needs the registry. */
import { engines } from '../../src/plants/package.json';
import { testHosts } from './hosts/expect-host';

const [oldest22, oldest24, oldest26] = engines.node.match(/[\d.]+/g) ?? [];

testHosts([
  { nest: 11, platform: 'express', build: 'cjs', node: oldest22 },
  { nest: 12, platform: 'fastify', build: 'mjs', node: oldest24 },
  { nest: 12, platform: 'express', build: 'cjs', node: oldest26 },
]);
