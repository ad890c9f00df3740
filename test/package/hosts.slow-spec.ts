import { testHosts } from './hosts/expect-host';

/** A part of the hosts that `npm run test:hosts` tries. It asks the registry, so it is no part of npm test. */

testHosts([
  { nest: 11, platform: 'express', modules: 'cjs' },
  { nest: 12, platform: 'fastify', modules: 'mjs' },
]);
