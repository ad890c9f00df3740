import { plantStore } from './contestants';
import { type Run, start, stop } from './race';
import { connections } from './server';
import { type Measured, takeTurns, type Turn } from './statistics';

/** More than are busy at a time, so that a request that arrives finds an idle one unless the server is late. */
const CONNECTIONS = 256;

/** Measures the highest rate of each store in each round, and then the latency at parts of it. */
export async function latencyAtFixedRates(run: Run): Promise<readonly Measured[]> {
  const measured: Measured[] = [];
  for (const [store, contestant] of Object.entries(plantStore)) {
    const server = await start(run, contestant);
    let highestRate = 0;
    const atPart = (percent: number) => ({
      name: `${store}, ${percent}% of the highest rate`,
      turn: (): Promise<Turn> =>
        server.measure({
          ...connections(CONNECTIONS, run.duration),
          arrivalRate: (highestRate * percent) / 100,
        }),
    });
    const atHighest = {
      name: `${store}, the highest rate`,
      turn: async (): Promise<Turn> => {
        const turn = await server.measure(connections(64, run.duration));
        highestRate = turn.rate ?? 0;
        return turn;
      },
    };
    measured.push(...(await takeTurns([atHighest, atPart(50), atPart(80)], run.rounds)));
    await stop(server);
  }
  return measured;
}
