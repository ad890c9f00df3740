import { PlantStoreClient } from '../../src/client/index.mjs';
import { TOKEN } from '../support/application';
import { freePort } from '../support/free-port';
import { useServiceHome } from '../support/service-process';
import { lockDatabase } from '../support/sqlite';
import { makeUnreliable } from '../support/unreliable-proxy';
import { until } from '../support/until';
import { expectExactlyOnce } from './killed-service';

describe('PlantStoreClient, when the service', () => {
  const home = useServiceHome();

  it('is killed three times under load, has each creation answered and stored once', async () => {
    await expectExactlyOnce(home, 3, async (answered) => {
      const before = answered();
      await until(() => answered() - before > 500);
    });
  }, 60_000);

  it('answers 503 while it ends, creates the plant with the next one', async () => {
    const environment = { PORT: String(await freePort()) };
    const first = await home.start(environment);
    const proxy = await makeUnreliable((await first.url()).origin, []);
    const client = new PlantStoreClient({ url: proxy.origin, token: TOKEN });
    // An open connection, on which the service still reads after the signal.
    await fetch(new URL('/health/live', proxy.origin));
    const lock = lockDatabase(home.file);

    const creation = client.create({ id: 1, name: 'Fern' });
    await until(() => proxy.seen.length > 1);
    await first.end();
    lock.close();
    await home.start(environment);

    expect(await creation).toEqual({ name: 'Fern', isReplay: false });
    expect(proxy.seen[1]?.what).toBe(503);
    expect(home.plants()).toEqual([{ id: 1n, name: 'Fern' }]);
    await proxy.stop();
  }, 60_000);
});
