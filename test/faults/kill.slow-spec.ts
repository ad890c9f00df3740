import { randomInt } from 'node:crypto';
import { killUnderLoad } from '../support/kill-rounds';
import { useServiceHome } from '../support/service-process';

const ROUNDS = 50;

describe(`${ROUNDS} times kill -9 under load`, () => {
  const seed = Number(process.env.SEED ?? randomInt(2 ** 31));

  const home = useServiceHome();

  it(`lose nothing acknowledged, and keep nothing refused (SEED=${seed})`, async () => {
    const report = await killUnderLoad(home.folder, ROUNDS, seed);

    expect(report).toMatchObject({
      acknowledgedAndLost: 0,
      refusedButStored: 0,
      integrity: 'ok',
    });
  }, 300_000);
});
