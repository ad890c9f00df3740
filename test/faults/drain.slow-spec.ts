import { once } from 'node:events';
import { creation, putLoad } from '../support/load';
import { useServiceHome } from '../support/service-process';
import { until } from '../support/until';
import { open } from '../support/wire';

const ROUNDS = 20;
const CONNECTIONS = 64;

describe(`${ROUNDS} times SIGTERM under load`, () => {
  const home = useServiceHome();

  it('answer all that was sent, keep all that was acknowledged, and end with 0', async () => {
    const acknowledged: bigint[] = [];
    const codes: (number | null)[] = [];
    let [answered, lost, failed] = [0, 0, 0];

    for (let round = 0; round < ROUNDS; round++) {
      const service = await home.start({ SHUTDOWN_TIMEOUT: '3s' });
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
      service.kill('SIGTERM');
      await load;
      codes.push((await service.ended).code);
      for (const socket of [idle, halfSent, keptAlive]) socket.destroy();
    }

    const stored = new Set(home.plants().map(({ id }) => id));
    expect({ lost, failed }).toEqual({ lost: 0, failed: 0 });
    expect(acknowledged.filter((id) => !stored.has(id))).toEqual([]);
    expect(codes).toEqual(Array(ROUNDS).fill(0));
  }, 300_000);
});
