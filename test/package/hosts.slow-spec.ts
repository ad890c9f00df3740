import { engines } from '../../src/plants/package.json';
import { testHosts } from './hosts/expect-host';

/** Of the hosts that `npm run test:hosts` tries, one on the oldest of each line of Node.js. It asks the registry, so it is no part of npm test. */

const [oldest22, oldest24, oldest26] = engines.node.match(/[\d.]+/g) ?? [];

testHosts([
  { nest: 11, platform: 'express', build: 'cjs', node: oldest22 },
  { nest: 12, platform: 'fastify', build: 'mjs', node: oldest24 },
  { nest: 12, platform: 'express', build: 'cjs', node: oldest26 },
]);
