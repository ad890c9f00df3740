import { PlantStoreClient } from '../../src/client/index.mjs';
import { TOKEN } from '../support/application';
import { freePort } from '../support/free-port';
import type { ServiceHome } from '../support/service-process';

const CALLERS = 32;

/**
 * Has callers create plants, each one after the other, while the service is killed with SIGKILL and
 * started again on its port; then expects of each creation that it was answered, and is stored once.
 *
 * @param untilNext resolves at the moment of the next end; it may ask how many creations were answered
 */
export async function expectExactlyOnce(
  home: ServiceHome,
  kills: number,
  untilNext: (answered: () => number) => Promise<unknown>,
): Promise<void> {
  const environment = { PORT: String(await freePort()) };
  let service = await home.start(environment);
  const client = new PlantStoreClient({ url: await service.url(), token: TOKEN });
  const answered: { id: bigint; name: string }[] = [];
  let isOver = false;
  const callers = Array.from({ length: CALLERS }, async (_, caller) => {
    for (let count = 0; !isOver; count++) {
      const plant = { id: BigInt(caller) * 10n ** 12n + BigInt(count), name: `${caller}/${count}` };
      await client.create(plant);
      answered.push(plant);
    }
  });

  for (let count = 0; count < kills; count++) {
    await untilNext(() => answered.length);
    await service.end('SIGKILL');
    service = await home.start(environment);
  }
  isOver = true;
  await Promise.all(callers);
  await service.end();

  answered.sort((one, other) => Number(one.id - other.id));
  expect(home.plants()).toEqual(answered);
}
