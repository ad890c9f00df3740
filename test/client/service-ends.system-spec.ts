/** Kills the service, a process, while clients retry. One kill by day; `npm run test:faults` takes minutes. */
import { PlantStoreClient } from '../../src/client/index.mjs';
import { TOKEN } from '../support/application';
import { findFreePort } from '../support/free-port';
import { useServiceHome } from '../support/service-process';
import { until } from '../support/until';

const CALLERS = 32;
/** `npm run test:faults` sets a larger number. */
const KILLS = Number(process.env.KILLS ?? 1);

describe('PlantStoreClient', () => {
  const home = useServiceHome();

  it(`stores each plant once while the service is killed ${KILLS} times`, async () => {
    const PORT = String(await findFreePort());
    let service = await home.start({ PORT });
    const client = new PlantStoreClient({ url: await service.url(), token: TOKEN });
    const created: { id: bigint; name: string }[] = [];
    let isOver = false;
    const callers = Array.from({ length: CALLERS }, async (_, caller) => {
      for (let count = 0; !isOver; count++) {
        const id = BigInt(caller) * 10n ** 12n + BigInt(count);
        // The service may take a long time to start.
        await client.create({ id, name: `${caller}/${count}` }, { timeout: Infinity });
        created.push({ id, name: `${caller}/${count}` });
      }
    });

    for (let count = 0; count < KILLS; count++) {
      const before = created.length;
      await until(() => created.length > before + 500);
      await service.end('SIGKILL');
      service = await home.start({ PORT });
    }
    isOver = true;
    await Promise.all(callers);
    await service.end();

    expect(home.plants()).toEqual(created.sort((one, other) => Number(one.id - other.id)));
  });
});
