import { printFigures, quantile } from '../support/figures';
import { makeFolder, removeFolder } from '../support/folder';
import { creation, putLoad } from '../support/load';
import { ServiceProcess } from '../support/service-process';
import { SmallMemory } from '../support/small-memory';

const KIB = 1024;
const MIB = 1024 * KIB;

/** Seconds. */
const DURATION = 15;

describe('a small memory', () => {
  let folder: string;
  let memory: SmallMemory;
  let service: ServiceProcess;
  beforeEach(() => {
    folder = makeFolder();
  });
  afterEach(async () => {
    service.kill('SIGKILL');
    await service.ended;
    await memory.remove();
    removeFolder(folder);
  });

  it.each([
    { limit: 256, connections: 64, size: 64 * KIB, statuses: [200] },
    { limit: 256, connections: 1024, size: 64 * KIB, statuses: [200, 503] },
    { limit: 256, connections: 64, size: MIB, statuses: [200, 503] },
    { limit: 512, connections: 256, size: MIB, statuses: [200, 503] },
  ])(
    'of $limit MiB answers $statuses to $connections callers with bodies of $size bytes',
    async ({ limit, connections, size, statuses }) => {
      memory = SmallMemory.make(limit * MIB);
      service = await ServiceProcess.start(folder, {}, memory.wrapper);
      const url = await service.url();
      const name = 'x'.repeat(size - 64);
      const counts = new Map<number, number>();
      const latencies: number[] = [];
      let lost = 0;
      let mostAnonymous = 0;
      const sampling = setInterval(() => {
        mostAnonymous = Math.max(mostAnonymous, memory.anonymous);
      }, 20);
      let id = 0;
      const end = performance.now() + DURATION * 1000;
      await putLoad({
        url,
        connections,
        next: () => (performance.now() < end ? creation(++id, name) : undefined),
        onAnswer: (_id, { status, latency }) => {
          counts.set(status, (counts.get(status) ?? 0) + 1);
          latencies.push(latency);
        },
        onLost: () => lost++,
      });
      clearInterval(sampling);
      expect(lost).toBe(0);

      printFigures(`${connections} callers, bodies of ${size / KIB} KiB, ${limit} MiB of memory`, {
        'answers by status': JSON.stringify(Object.fromEntries(counts)),
        'latency, median and 99% (ms)': [0.5, 0.99].map((at) => quantile(latencies, at).toFixed(0)),
        'most anonymous memory (MiB)': mostAnonymous.toFixed(0),
        'most memory, cached files included (MiB)': memory.peak.toFixed(0),
      });
      expect([...counts.keys()].filter((status) => !statuses.includes(status))).toEqual([]);
      expect(counts.get(200)).toBeGreaterThan(0);
      const after = await service.post('{"id":0,"name":"Fern"}');
      expect(after.status).toBe(200);
      service.kill('SIGTERM');
      expect(await service.ended).toEqual({ code: 0, signal: null });
    },
    120_000,
  );
});
