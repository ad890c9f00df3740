import { once } from 'node:events';
import { join } from 'node:path';
import { printFigures } from '../support/figures';
import { makeFolder, removeFolder } from '../support/folder';
import { creation, putLoad } from '../support/load';
import { ServiceProcess } from '../support/service-process';
import { readPlants } from '../support/sqlite';
import { until } from '../support/until';
import { open } from '../support/wire';

const ROUNDS = 20;
const CONNECTIONS = 64;

describe(`${ROUNDS} times SIGTERM under load`, () => {
  it('answer all that was sent, keep all that was acknowledged, and end with 0', async () => {
    const folder = makeFolder();
    const acknowledged: bigint[] = [];
    const codes: (number | null)[] = [];
    const times: number[] = [];
    let answered = 0;
    let lost = 0;
    let failed = 0;

    for (let round = 0; round < ROUNDS; round++) {
      const service = await ServiceProcess.start(folder, { SHUTDOWN_TIMEOUT: '3s' });
      const url = await service.url();
      const idle = open(url);
      const halfSent = open(url);
      const keptAlive = open(url);
      for (const socket of [idle, halfSent, keptAlive]) socket.on('error', () => undefined);
      halfSent.write(creation(0).text.slice(0, round * 8));
      keptAlive.write('GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n');
      await once(keptAlive, 'data');

      let sequence = 0;
      const load = putLoad({
        url,
        connections: CONNECTIONS,
        next: () => creation(round * 1_000_000 + ++sequence),
        onAnswer: (id, { status }) => {
          answered++;
          if (status === 200) acknowledged.push(BigInt(id));
          else failed++;
        },
        onLost: () => lost++,
      });
      await new Promise((resolve) => setTimeout(resolve, 150 + 10 * round));
      // Each connection has been accepted by then: one still in the kernel's queue is reset.
      const before = answered;
      await until(() => answered - before > 10 * CONNECTIONS);
      const start = performance.now();
      service.kill('SIGTERM');
      await load;
      codes.push((await service.ended).code);
      times.push(Math.round(performance.now() - start));
      for (const socket of [idle, halfSent, keptAlive]) socket.destroy();
    }

    const stored = new Set(readPlants(join(folder, 'data/plants.db')).map(({ id }) => id));
    const report = {
      rounds: ROUNDS,
      answered,
      'reset or unanswered': lost,
      'answered with anything but 200': failed,
      'acknowledged and lost': acknowledged.filter((id) => !stored.has(id)).length,
      'exit codes': [...new Set(codes)].join(),
      'slowest exit (ms; limit 3000, a half-sent request is cut at 2400)': Math.max(...times),
    };
    printFigures('SIGTERM under load', report);
    expect(report).toMatchObject({
      'reset or unanswered': 0,
      'answered with anything but 200': 0,
      'acknowledged and lost': 0,
      'exit codes': '0',
    });
    removeFolder(folder);
  }, 300_000);
});
