import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
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

    for (let round = 0; round < ROUNDS; round++) {
      const service = await home.start({ SHUTDOWN_TIMEOUT: '3s' });
      const url = await service.url();
      const others = [open(url), open(url), open(url)] as const;
      const [, halfSent, keptAlive] = others;
      for (const socket of others) socket.on('error', () => undefined);
      halfSent.write(creation(0).text.slice(0, round * 8));
      keptAlive.write('GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n');
      await once(keptAlive, 'data');

      let [sent, answered] = [0, 0];
      const load = putLoad({
        url,
        connections: CONNECTIONS,
        next: () => creation(round * 1_000_000 + ++sent),
        onAnswer: (id, { status }) => {
          answered++;
          if (status === 200) acknowledged.push(BigInt(id));
        },
      });
      await setTimeout(150 + 10 * round);
      // Each connection has been accepted by then: one still in the kernel's queue is reset.
      const before = answered;
      await until(() => answered - before > 10 * CONNECTIONS);

      expect(await service.end()).toEqual({ code: 0, signal: null });
      expect(await load).toEqual({ 200: answered });
      for (const socket of others) socket.destroy();
    }

    const stored = new Set(home.plants().map(({ id }) => id));
    expect(acknowledged.filter((id) => !stored.has(id))).toEqual([]);
  });
});
