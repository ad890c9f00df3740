import { TOKEN } from './support/application';
import { expectAsDeclared } from './support/contract';
import { makeFolder, removeFolder } from './support/folder';
import { ServiceProcess } from './support/service-process';
import { readPlants } from './support/sqlite';
import { join } from 'node:path';

describe('a disk that takes no more', () => {
  it('is answered 503 or 504, keeps what was acknowledged, and the process lives', async () => {
    const folder = makeFolder();
    const limit = ['sh', '-c', 'ulimit -f 400; exec "$@"', 'sh'];
    const service = await ServiceProcess.start(folder, {}, limit);
    const url = await service.url();

    const acknowledged: bigint[] = [];
    const failures: number[] = [];
    for (let id = 1; id <= 100; id++) {
      const response = await fetch(new URL('/plants', url), {
        method: 'POST',
        headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
        body: JSON.stringify({ id, name: 'x'.repeat(10_000) }),
      });
      const body = (await response.json()) as { error?: number };
      expectAsDeclared({
        status: response.status,
        headers: Object.fromEntries(response.headers),
        body,
      });
      const { error } = body;
      if (response.ok) acknowledged.push(BigInt(id));
      else failures.push(error ?? 0);
    }

    expect(acknowledged.length).toBeGreaterThan(0);
    expect(failures.length).toBeGreaterThan(0);
    expect(failures.filter((error) => error !== 50300 && error !== 50400)).toEqual([]);
    service.kill('SIGTERM');
    expect(await service.ended).toEqual({ code: 0, signal: null });
    expect(readPlants(join(folder, 'data/plants.db')).map(({ id }) => id)).toEqual(
      expect.arrayContaining(acknowledged),
    );
    removeFolder(folder);
  });
});
