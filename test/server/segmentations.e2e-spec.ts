import { randomInt } from 'node:crypto';
import { TestApplication } from '../support/application';
import { BODY_LIMIT, runScripts } from '../support/connection-model';

/** `npm run test:faults` sets a larger number. */
const CONNECTIONS = Number(process.env.CONVERSATIONS ?? 4_000);
const EXAMPLE = 1000;

describe('random requests, split at random positions', () => {
  const application = TestApplication.use({
    BODY_LIMIT: String(BODY_LIMIT),
    // This timeout is so long that it does not close a connection that should have been closed before.
    KEEP_ALIVE_TIMEOUT: '60m',
  });
  afterEach(() => {
    application.store.removePlants();
  });

  it.each([
    [Number(process.env.SEED ?? randomInt(2 ** 31)), CONNECTIONS],
    // With this seed, oversized headers follow a response that closes the connection.
    [866_316_579, EXAMPLE],
  ])(
    'get one response each, in order, and none after a closing response (SEED=%i)',
    async (seed, count) => {
      const { url } = application;
      const { violations, mustBeStored, mayBeStored } = await runScripts(url, seed, count);

      expect(violations.slice(0, 5)).toEqual([]);
      const ids = new Set(application.store.plants().map(({ id }) => Number(id)));
      expect([...ids].filter((id) => !mustBeStored.has(id) && !mayBeStored.has(id))).toEqual([]);
      expect([...mustBeStored].filter((id) => !ids.has(id))).toEqual([]);
    },
  );
});
