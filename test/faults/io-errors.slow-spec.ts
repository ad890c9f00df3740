import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, statSync } from 'node:fs';
import { errorBodies } from '../support/error-bodies';
import { createRequest, expectOutcomesMatch, Load } from '../support/load';
import { useServiceHome } from '../support/service-process';
import { checkIntegrity } from '../support/sqlite';
import { createFaultWrapper, createStraceWrapper, findTracee } from '../support/strace';
import { until } from '../support/until';

describe('the service on a disk that fails for a while', () => {
  const home = useServiceHome();

  it.each([
    ['an I/O error on the sync', 'fsync,fdatasync', 'EIO', '60..70'],
    ['a file system that becomes read-only', 'pwrite64', 'EROFS', '200..260'],
  ])('recovers from %s without a restart', async (_what, calls, error, when) => {
    const service = await home.start({}, createFaultWrapper(calls, `error=${error}:when=${when}`));
    let [nextId, after, hasFailed] = [1, 0, false];
    const { creations } = await Load.run({
      urls: [await service.url()],
      connections: 4,
      backOffMs: 20,
      next: () => (after < 200 ? createRequest(nextId++) : undefined),
      onResponse: ({ outcome }) => {
        if (outcome !== 200) hasFailed = true;
        else if (hasFailed) after++;
      },
    });
    await service.waitUntilReady();
    process.kill(findTracee(service.pid), 'SIGKILL');
    await service.ended;

    expectOutcomesMatch(creations, home.plants());
    expect(checkIntegrity(home.file)).toBe('ok');
  });

  it.each([
    ['an I/O error on the sync', 'fsync,fdatasync', 'EIO'],
    ['a read-only file system', 'pwrite64', 'EROFS'],
  ])('exits at startup on %s with one error message', async (_what, calls, error) => {
    const wrapper = createFaultWrapper(calls, `error=${error}:when=3+`);
    const service = home.spawn({ AUTH_TOKENS: 'a-token' }, wrapper);

    expect((await service.ended).code).toBe(1);
    expect(service.stderr).toMatch(
      /^DATABASE_URL names the file \S+, which cannot be used: disk I\/O error\.\n$/,
    );
  });
});

describe('a create request whose database file is deleted during its commit', () => {
  const home = useServiceHome();

  it('gets 504, and the service is not ready until a restart', async () => {
    const service = await home.start();
    await service.post('{"id":1,"name":"Fern"}');
    const [program = '', ...options] = createStraceWrapper(
      '-p',
      String(service.pid),
      '-o',
      '/dev/null',
    );
    const delay = 'inject=fsync,fdatasync:delay_enter=5000000';
    const slow = spawn(program, [...options, '-e', 'trace=fsync,fdatasync', '-e', delay]);
    const status = `/proc/${service.pid}/status`;
    await until(() => /TracerPid:\t[1-9]/.test(readFileSync(status, 'utf8')));
    const walBytes = () => statSync(`${home.file}-wal`).size;
    const before = walBytes();

    const response = service.post('{"id":2,"name":"Moss"}');
    await until(() => walBytes() > before);
    rmSync(home.file);

    expect(await (await response).json()).toEqual(errorBodies.outcomeUnknown);
    slow.kill();
    await once(slow, 'close');
    expect(await service.getStatus('/health/ready')).toBe(503);
    expect((await service.post('{"id":3,"name":"Oak"}')).status).toBe(503);
    expect(service.stdout.match(/A restart is needed/g)).toHaveLength(1);
  });
});
