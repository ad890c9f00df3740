/** Makes system calls of the service fail. Needs Linux and strace. */
import { type CreateRequest, createMany, createUntil, expectOutcomesMatch } from '../support/load';
import { useServiceHome } from '../support/service-process';
import { checkIntegrity } from '../support/sqlite';
import { createFaultWrapper } from '../support/strace';

const home = useServiceHome();

it.each([
  ['an I/O error on the sync', 'fsync,fdatasync', 'EIO', '60..70'],
  // As a network disk does. By then, its batch has timed out.
  ['a sync that hangs for 11 s and then fails', 'fsync,fdatasync', 'EIO:delay_enter=11s', '60..70'],
  ['a file system that becomes read-only', 'pwrite64', 'EROFS', '200..260'],
  ['a disk quota that is exceeded', 'pwrite64', 'EDQUOT', '200..260'],
])(
  'the service exits with code 1 on %s, and keeps its promises after a restart',
  async (_what, calls, error, when) => {
    const creations: CreateRequest[] = [];
    const failing = await home.start({}, createFaultWrapper(calls, `error=${error}:when=${when}`));

    await createUntil(() => false, failing, creations);

    expect(await failing.ended).toEqual({ code: 1, signal: null });
    expect(failing.stdout.match(/"level":50,.*The outcome of the last commit .*/g)).toHaveLength(1);
    const service = await home.start();
    await createMany(200, service, creations);
    await service.end('SIGKILL');
    expectOutcomesMatch(creations, home.plants());
    expect(checkIntegrity(home.file)).toBe('ok');
  },
);

it.each([
  ['a read-only file system', 'EROFS', 'EROFS: read-only file system'],
  ['an exceeded disk quota', 'EDQUOT', 'EDQUOT: disk quota exceeded'],
])('the service exits at startup on %s with one error message', async (_what, error, reason) => {
  const wrapper = createFaultWrapper('pwrite64', `error=${error}:when=3+`);
  const service = home.spawn({ AUTH_TOKENS: 'a-token' }, wrapper);

  expect((await service.ended).code).toBe(1);
  const { folder } = home;
  expect(service.stderr).toMatch(
    /^DATABASE_URL names the file \S+, which cannot be used: disk I\/O error \(.*\)\.\n$/,
  );
  expect(service.stderr).toContain(`(${reason}, write '${folder}/data').`);
});
