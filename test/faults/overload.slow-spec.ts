import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { creation, putLoad } from '../support/load';
import { residentMemory } from '../support/metrics';
import { useServiceHome } from '../support/service-process';
import { strace, tracee } from '../support/strace';

describe('overload', () => {
  const home = useServiceHome();
  let nextId = 1;

  /** Puts a load of some seconds on a server, and says what came of it. */
  async function load(url: URL, connections: number, seconds: number, backOff = 0) {
    const start = performance.now();
    const phase = { created: 0, refused: 0, other: 0 };
    await putLoad({
      url,
      connections,
      backOff,
      next: () => (performance.now() - start < seconds * 1000 ? creation(nextId++) : undefined),
      onAnswer: (_id, { status }) => {
        phase[status === 200 ? 'created' : status === 503 ? 'refused' : 'other']++;
      },
      onLost: () => phase.other++,
    });
    return { ...phase, rate: phase.created / seconds };
  }

  it('of a slow disk, ten times what it takes, leaves the goodput as it is', async () => {
    const slowSync = strace(
      ...['--seccomp-bpf', '-e', 'trace=fsync,fdatasync', '-o', '/dev/null'],
      ...['-e', 'inject=fsync,fdatasync:delay_exit=500000'],
    );
    const service = await home.start({ MAX_CONNECTIONS: '8000' }, slowSync);
    const url = await service.url();
    await load(url, 2048, 3);
    const peak = await load(url, 2048, 10);

    const memory = await residentMemory(url);
    const overload = await load(url, 5000, 15, 40);
    expect(await residentMemory(url)).toBeLessThan(memory + 300);
    await setTimeout(5000);
    const after = await load(url, 1, 4);

    process.kill(tracee(service.pid), 'SIGTERM');
    await service.ended;
    expect(overload.rate / peak.rate).toBeGreaterThanOrEqual(0.9);
    expect(overload.refused).toBeGreaterThan(overload.created);
    expect(overload.other).toBe(0);
    expect(after.refused).toBe(0);
  }, 120_000);

  it('of the processor, by ten times the connections that saturate it, costs it no more than a bare server', async () => {
    const service = await home.start();
    const bare = await startBareServer();
    const servers = { service: await service.url(), bare: bare.url };
    const ratios = { service: [] as number[], bare: [] as number[] };
    let others = 0;
    for (let round = 0; round < 4; round++) {
      for (const name of ['service', 'bare'] as const) {
        const few = await load(servers[name], 64, 3);
        const many = await load(servers[name], 640, 3);
        // The first round is for warming up.
        if (round > 0) ratios[name].push(many.rate / few.rate);
        others += few.other + many.other;
      }
    }
    bare.stop();

    expect(median(ratios.service)).toBeGreaterThanOrEqual(0.9 * median(ratios.bare));
    expect(others).toBe(0);
  }, 120_000);
});

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}

/** A server of Node's own that answers 200 to every request, in a thread of its own. */
async function startBareServer(): Promise<{ url: URL; stop: () => void }> {
  const worker = new Worker(
    `const server = require('node:http').createServer((request, response) => {
       request.resume().on('end', () => response.end('{"name":"Fern"}'));
     });
     server.listen(0, '127.0.0.1', () => {
       require('node:worker_threads').parentPort.postMessage(server.address().port);
     });`,
    { eval: true },
  );
  const [port] = (await once(worker, 'message')) as [number];
  return { url: new URL(`http://127.0.0.1:${port}`), stop: () => void worker.terminate() };
}
