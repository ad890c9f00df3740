import { randomInt } from 'node:crypto';
import { useFolder } from '../support/folder';
import { killUnderLoad } from '../support/kill-rounds';

describe('the service under kill -9', () => {
  const seed = Number(process.env.SEED ?? randomInt(2 ** 31));
  const folder = useFolder();

  it(`loses nothing that it acknowledged and keeps nothing that it refused (SEED=${seed})`, async () => {
    const report = await killUnderLoad(folder, 3, seed);

    expect(report).toMatchObject({
      acknowledgedAndLost: 0,
      refusedButStored: 0,
      integrity: 'ok',
    });
    expect(report.acknowledged).toBeGreaterThan(200);
    expect(report.refused).toBeGreaterThan(10);
  }, 60_000);
});
