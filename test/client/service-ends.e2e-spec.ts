import { PlantStoreClient } from '../../src/client/index.mjs';
import { TOKEN } from '../support/application';
import { freePort } from '../support/free-port';
import { useServiceHome } from '../support/service-process';
import { until } from '../support/until';

const CALLERS = 32;
/** `npm run test:faults` takes more. */
const KILLS = Number(process.env.KILLS ?? 1);

describe('PlantStoreClient', () => {
  const home = useServiceHome();

  it(`stores each plant once while the service is killed ${KILLS} times`, async () => {
    const PORT = String(await freePort());
    let service = await home.start({ PORT });
    const client = new PlantStoreClient({ url: await service.url(), token: TOKEN });
    const answered: { id: bigint; name: string }[] = [];
    let isOver = false;
    const callers = Array.from({ length: CALLERS }, async (_, caller) => {
      for (let count = 0; !isOver; count++) {
        const id = BigInt(caller) * 10n ** 12n + BigInt(count);
        // A start may take long.
        await client.create({ id, name: `${caller}/${count}` }, { timeout: Infinity });
        answered.push({ id, name: `${caller}/${count}` });
      }
    });

    for (let count = 0; count < KILLS; count++) {
      const before = answered.length;
      await until(() => answered.length > before + 500);
      await service.end('SIGKILL');
      service = await home.start({ PORT });
    }
    isOver = true;
    await Promise.all(callers);
    await service.end();

    expect(home.plants()).toEqual(answered.sort((one, other) => Number(one.id - other.id)));
  });
});
