import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { printFigures, quantile } from '../support/figures';
import { makeFolder, removeFolder } from '../support/folder';
import { creation, putLoad } from '../support/load';
import { residentMemory } from '../support/metrics';
import { ServiceProcess } from '../support/service-process';
import { strace, tracee } from '../support/strace';

/** What a load of some seconds showed. */
interface Phase {
  readonly created: number;
  readonly refused: number;
  readonly other: number;
  readonly seconds: number;
  readonly acceptedLatencies: readonly number[];
  readonly refusedLatencies: readonly number[];
}

describe('overload', () => {
  let folder: string;
  let service: ServiceProcess;
  let url: URL;
  let nextId = 1;
  beforeEach(() => {
    folder = makeFolder();
  });
  afterEach(() => {
    removeFolder(folder);
  });

  async function load(connections: number, seconds: number, backOff: number): Promise<Phase> {
    const start = performance.now();
    const phase = { created: 0, refused: 0, other: 0 };
    const acceptedLatencies: number[] = [];
    const refusedLatencies: number[] = [];
    await putLoad({
      url,
      connections,
      backOff,
      next: () => (performance.now() - start < seconds * 1000 ? creation(nextId++) : undefined),
      onAnswer: (_id, { status, latency }) => {
        if (status === 200) {
          phase.created++;
          acceptedLatencies.push(latency);
        } else if (status === 503) {
          phase.refused++;
          refusedLatencies.push(latency);
        } else {
          phase.other++;
        }
      },
      onLost: () => phase.other++,
    });
    return { ...phase, seconds, acceptedLatencies, refusedLatencies };
  }

  const rate = ({ created, seconds }: Phase) => created / seconds;
  const ms = (values: readonly number[], share: number) => quantile(values, share).toFixed(0);

  it('of a slow disk, ten times what it takes, leaves the goodput as it is', async () => {
    const slowSync = strace(
      '--seccomp-bpf',
      '-e',
      'trace=fsync,fdatasync',
      '-e',
      'inject=fsync,fdatasync:delay_exit=500000',
      '-o',
      '/dev/null',
    );
    service = await ServiceProcess.start(folder, { MAX_CONNECTIONS: '8000' }, slowSync);
    url = await service.url();
    await load(2048, 3, 0);
    const peak = await load(2048, 10, 0);
    const memoryBefore = await residentMemory(url);

    const overload = await load(5000, 15, 40);
    const memoryAfter = await residentMemory(url);
    await setTimeout(5000);
    const after = await load(1, 4, 0);

    const offered = (overload.created + overload.refused) / overload.seconds;
    printFigures('a slow disk (0.5 s a sync), ten times overloaded', {
      'peak (created/s)': rate(peak).toFixed(0),
      'offered (requests/s)': offered.toFixed(0),
      'offered to served': (offered / rate(overload)).toFixed(1),
      'goodput (created/s)': rate(overload).toFixed(0),
      'goodput to peak': (rate(overload) / rate(peak)).toFixed(2),
      'accepted: latency at the peak, median and 99% (ms)': `${ms(peak.acceptedLatencies, 0.5)}, ${ms(peak.acceptedLatencies, 0.99)}`,
      'accepted: latency overloaded, median and 99% (ms)': `${ms(overload.acceptedLatencies, 0.5)}, ${ms(overload.acceptedLatencies, 0.99)}`,
      'refused: latency, median and 99% (ms)': `${ms(overload.refusedLatencies, 0.5)}, ${ms(overload.refusedLatencies, 0.99)}`,
      'neither 200 nor 503': overload.other,
      'memory before and after (MiB)': `${memoryBefore.toFixed(0)}, ${memoryAfter.toFixed(0)}`,
      'five seconds later: refused': after.refused,
      'five seconds later: latency (ms)': ms(after.acceptedLatencies, 0.5),
    });
    process.kill(tracee(service.pid), 'SIGTERM');
    await service.ended;
    expect(rate(overload) / rate(peak)).toBeGreaterThanOrEqual(0.9);
    expect(overload.refused).toBeGreaterThan(overload.created);
    expect(overload.other).toBe(0);
    expect(after.refused).toBe(0);
    expect(memoryAfter).toBeLessThan(memoryBefore + 300);
  }, 120_000);

  it('of the processor, by ten times the connections that saturate it, costs it no more than a bare server', async () => {
    service = await ServiceProcess.start(folder);
    const bare = await startBareServer();
    const servers = { service: await service.url(), bare: bare.url };
    const rates = {
      service: { few: [] as number[], many: [] as number[] },
      bare: { few: [] as number[], many: [] as number[] },
    };
    const phases: Phase[] = [];
    for (let round = 0; round < 4; round++) {
      for (const name of ['service', 'bare'] as const) {
        url = servers[name];
        const few = await load(64, 3, 0);
        const many = await load(640, 3, 0);
        // The first round is for warming up.
        if (round === 0) continue;
        rates[name].few.push(rate(few));
        rates[name].many.push(rate(many));
        if (name === 'service') phases.push(many);
      }
    }
    bare.stop();
    url = servers.service;
    const after = await load(1, 1, 0);

    const kept = ({ few, many }: { few: number[]; many: number[] }) =>
      quantile(many, 0.5) / quantile(few, 0.5);
    const latencies = phases.flatMap((phase) => phase.acceptedLatencies);
    printFigures('ten times the connections that saturate the processor', {
      'goodput with 64 (created/s)': quantile(rates.service.few, 0.5).toFixed(0),
      'goodput with 640 (created/s)': quantile(rates.service.many, 0.5).toFixed(0),
      'goodput to peak': kept(rates.service).toFixed(2),
      'the same of a bare node:http server': kept(rates.bare).toFixed(2),
      'latency with 640, median and 99% (ms)': `${ms(latencies, 0.5)}, ${ms(latencies, 0.99)}`,
      refused: phases.reduce((sum, { refused }) => sum + refused, 0),
      'afterwards: latency (ms)': ms(after.acceptedLatencies, 0.5),
    });
    service.kill('SIGTERM');
    await service.ended;
    expect(kept(rates.service)).toBeGreaterThanOrEqual(0.9 * kept(rates.bare));
    expect(phases.every(({ other }) => other === 0)).toBe(true);
  }, 120_000);
});

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
  return {
    url: new URL(`http://127.0.0.1:${port}`),
    stop: () => void worker.terminate(),
  };
}
