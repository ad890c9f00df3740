import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { BODY_LIMIT, playScripts } from '../support/connection-model';
import { printFigures } from '../support/figures';
import { makeFolder, removeFolder } from '../support/folder';
import { ServiceProcess } from '../support/service-process';
import { readPlants } from '../support/sqlite';

const CONNECTIONS = 100_000;

describe('100,000 connections with any requests, ends and breaks, in any segments', () => {
  const seed = Number(process.env.SEED ?? randomInt(2 ** 31));

  it(`are answered as the model says (SEED=${seed})`, async () => {
    const folder = makeFolder();
    const service = await ServiceProcess.start(folder, { BODY_LIMIT: String(BODY_LIMIT) });
    const url = await service.url();

    const { faults, stored, maybeStored } = await playScripts(url, seed, CONNECTIONS);
    service.kill('SIGTERM');
    const { code } = await service.ended;

    const ids = new Set(readPlants(join(folder, 'data/plants.db')).map(({ id }) => Number(id)));
    const report = {
      'answered otherwise': faults.length,
      stored: ids.size,
      'stored, but to be ignored': [...ids].filter((id) => !stored.has(id) && !maybeStored.has(id))
        .length,
      'answered 200, but not stored': [...stored].filter((id) => !ids.has(id)).length,
      'exit code': code,
    };
    printFigures(`${CONNECTIONS} connections (SEED=${seed})`, report);
    expect(faults.slice(0, 5)).toEqual([]);
    expect(report).toMatchObject({
      'stored, but to be ignored': 0,
      'answered 200, but not stored': 0,
      'exit code': 0,
    });
    removeFolder(folder);
  }, 1_800_000);
});
