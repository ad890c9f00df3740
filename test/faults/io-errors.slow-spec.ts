import { creation, expectKept, Load } from '../support/load';
import { useServiceHome } from '../support/service-process';
import { integrity } from '../support/sqlite';
import { inject, tracee } from '../support/strace';

describe('a disk that fails for a while', () => {
  const home = useServiceHome();

  it.each([
    ['an I/O error on the sync', 'fsync,fdatasync', 'EIO', '60..70'],
    ['a file system that becomes read-only', 'pwrite64', 'EROFS', '200..260'],
  ])('with %s is got over without a restart', async (_what, calls, error, when) => {
    const service = await home.start({}, inject(calls, `error=${error}:when=${when}`));
    let [nextId, after, hasFailed] = [1, 0, false];
    const { creations } = await Load.put({
      urls: [await service.url()],
      connections: 4,
      backOff: 20,
      next: () => (after < 200 ? creation(nextId++) : undefined),
      onAnswer: ({ outcome }) => {
        if (outcome !== 200) hasFailed = true;
        else if (hasFailed) after++;
      },
    });
    await service.untilReady();
    process.kill(tracee(service.pid), 'SIGKILL');
    await service.ended;

    expectKept(creations, home.plants());
    expect(integrity(home.file)).toBe('ok');
  });

  it.each([
    ['an I/O error on the sync', 'fsync,fdatasync', 'EIO'],
    ['a read-only file system', 'pwrite64', 'EROFS'],
  ])('with %s ends a start with one sentence', async (_what, calls, error) => {
    const wrapper = inject(calls, `error=${error}:when=3+`);
    const service = home.begin({ AUTH_TOKENS: 'a-token' }, wrapper);

    expect((await service.ended).code).toBe(1);
    expect(service.stderr).toMatch(
      /^DATABASE_URL names the file \S+, which cannot be used: disk I\/O error\.\n$/,
    );
  });
});
