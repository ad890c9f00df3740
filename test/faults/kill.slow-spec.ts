import { randomInt } from 'node:crypto';
import { makeFolder, removeFolder } from '../support/folder';
import { killUnderLoad } from '../support/kill-rounds';

const ROUNDS = 50;

describe(`${ROUNDS} times kill -9 under load`, () => {
  const seed = Number(process.env.SEED ?? randomInt(2 ** 31));

  it(`lose nothing acknowledged, and keep nothing refused (SEED=${seed})`, async () => {
    const folder = makeFolder();

    const report = await killUnderLoad(folder, ROUNDS, seed);

    expect(report).toMatchObject({
      acknowledgedAndLost: 0,
      refusedButStored: 0,
      integrity: 'ok',
    });
    removeFolder(folder);
  }, 300_000);
});
