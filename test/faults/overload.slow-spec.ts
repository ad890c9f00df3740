import { setTimeout } from 'node:timers/promises';
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
});
