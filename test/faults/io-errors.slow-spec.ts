import { join } from 'node:path';
import { creation, putLoad } from '../support/load';
import { reportOutcomes } from '../support/outcomes';
import { useServiceHome } from '../support/service-process';
import { strace, tracee } from '../support/strace';

describe('a disk that fails for a while', () => {
  const home = useServiceHome();

  it.each([
    ['an I/O error on the sync', 'fsync,fdatasync', 'EIO', '60..70'],
    ['a file system that becomes read-only', 'pwrite64', 'EROFS', '200..260'],
  ])('with %s is got over without a restart', async (_what, calls, error, when) => {
    const wrapper = strace(
      '--seccomp-bpf',
      ...['-e', `trace=${calls}`],
      ...['-e', `inject=${calls}:error=${error}:when=${when}`],
      ...['-o', join(home.folder, 'trace')],
    );
    const service = await home.start({}, wrapper);
    const outcomes = new Map<number, number>();
    let nextId = 1;
    let after = 0;
    await putLoad({
      url: await service.url(),
      connections: 4,
      backOff: 20,
      next: () => (after < 200 ? creation(nextId++) : undefined),
      onAnswer: (id, { status, body }) => {
        const failed = [...outcomes.values()].some((outcome) => outcome !== 200);
        outcomes.set(id, status === 200 ? 200 : (JSON.parse(body) as { error: number }).error);
        if (failed && status === 200) after++;
      },
    });
    await service.untilReady();
    process.kill(tracee(service.pid), 'SIGKILL');
    await service.ended;

    const report = reportOutcomes(outcomes, home.file);
    expect(report).toMatchObject({
      'acknowledged and lost': 0,
      'refused but stored': 0,
      integrity: 'ok',
    });
    expect(report['refused (50300)'] + report['unknown (50400)']).toBeGreaterThan(0);
  });

  it.each([
    ['an I/O error on the sync', 'fsync,fdatasync', 'EIO', 'disk I/O error'],
    ['a read-only file system', 'pwrite64', 'EROFS', 'disk I/O error'],
  ])('with %s ends a start with one sentence', async (_what, calls, error, reason) => {
    const service = home.begin(
      { AUTH_TOKENS: 'a-token' },
      strace(
        ...['-e', `trace=${calls}`, '-e', `inject=${calls}:error=${error}:when=3+`],
        ...['-o', join(home.folder, 'trace')],
      ),
    );

    expect((await service.ended).code).toBe(1);
    expect(service.stderr).toMatch(
      new RegExp(`^The database file \\S+ cannot be used: ${reason} \\(DATABASE_URL\\)\\.\\n$`),
    );
  });
});
