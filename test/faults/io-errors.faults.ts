import { join } from 'node:path';
import { printFigures } from '../support/figures';
import { makeFolder, removeFolder } from '../support/folder';
import { creation, putLoad } from '../support/load';
import { ServiceProcess } from '../support/service-process';
import { strace, tracee } from '../support/strace';
import { integrity, readPlants } from '../support/sqlite';
import { until } from '../support/until';

describe('a disk that fails for a while', () => {
  it.each([
    ['an I/O error on the sync', 'fsync,fdatasync', 'EIO', '60..70'],
    ['a file system that becomes read-only', 'pwrite64', 'EROFS', '200..260'],
  ])(
    'with %s is got over without a restart',
    async (what, calls, error, when) => {
      const folder = makeFolder();
      const wrapper = strace(
        '--seccomp-bpf',
        ...['-e', `trace=${calls}`],
        ...['-e', `inject=${calls}:error=${error}:when=${when}`],
        ...['-o', join(folder, 'trace')],
      );
      const service = await ServiceProcess.start(folder, {}, wrapper);
      const url = await service.url();
      const outcomes = new Map<number, number>();
      let nextId = 1;
      let after = 0;
      await putLoad({
        url,
        connections: 4,
        backOff: 20,
        next: () => (after < 200 ? creation(nextId++) : undefined),
        onAnswer: (id, { status, body }) => {
          const failed = [...outcomes.values()].some((outcome) => outcome !== 200);
          outcomes.set(id, status === 200 ? 200 : (JSON.parse(body) as { error: number }).error);
          if (failed && status === 200) after++;
        },
      });
      await until(async () => (await fetch(new URL('/health/ready', url))).status === 200);
      process.kill(tracee(service.pid), 'SIGKILL');
      await service.ended;

      const file = join(folder, 'data/plants.db');
      const stored = new Set(readPlants(file).map(({ id }) => id));
      const idsWith = (outcome: number) =>
        [...outcomes].filter(([, each]) => each === outcome).map(([id]) => BigInt(id));
      const report = {
        acknowledged: idsWith(200).length,
        'refused (50300)': idsWith(50300).length,
        'unknown (50400)': idsWith(50400).length,
        'unknown and stored': idsWith(50400).filter((id) => stored.has(id)).length,
        'acknowledged and lost': idsWith(200).filter((id) => !stored.has(id)).length,
        'refused but stored': idsWith(50300).filter((id) => stored.has(id)).length,
        integrity: integrity(file),
      };
      printFigures(what, report);
      expect(report).toMatchObject({
        'acknowledged and lost': 0,
        'refused but stored': 0,
        integrity: 'ok',
      });
      expect(idsWith(50300).length + idsWith(50400).length).toBeGreaterThan(0);
      removeFolder(folder);
    },
    60_000,
  );
});
