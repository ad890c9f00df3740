/** Shows that a stop under load loses no request. Takes a minute. */
import { setTimeout } from 'node:timers/promises';
import { type CreateRequest, createRequest, expectOutcomesMatch, Load } from '../support/load';
import { useServiceHome } from '../support/service-process';

const ROUNDS = 20;
const CONNECTIONS = 64;

describe(`a service that gets SIGTERM ${ROUNDS} times under load`, () => {
  const home = useServiceHome();

  it('responds to every request, keeps every acknowledged plant, and exits with code 0', async () => {
    const creations: CreateRequest[] = [];

    for (let round = 0; round < ROUNDS; round++) {
      const service = await home.start({ SHUTDOWN_TIMEOUT: '3s' });
      const url = await service.url();
      let id = round * 1_000_000;
      const next = () => createRequest(++id);
      const load = new Load({ urls: [url], connections: CONNECTIONS, next, shouldReconnect: true });
      await setTimeout(500 + 10 * round);

      expect(await service.end()).toEqual({ code: 0, signal: null });
      await load.stop();
      expect(Object.keys(load.counts)).toEqual(['200']);
      creations.push(...load.creations);
    }

    expectOutcomesMatch(creations, home.plants());
  });
});
