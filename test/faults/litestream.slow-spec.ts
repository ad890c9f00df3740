/** Runs the service beside Litestream, which keeps a read transaction open. Needs Linux on x64. */
import { join } from 'node:path';
import { type CreateRequest, createMany, expectOutcomesMatch } from '../support/load';
import { run } from '../support/run';
import { useServiceHome } from '../support/service-process';
import { readPlants } from '../support/sqlite';
import { TestProcess } from '../support/test-process';

/** npm has Litestream only for this platform. */
const describeWithLitestream =
  `${process.platform}-${process.arch}` === 'linux-x64' ? describe : describe.skip;

describeWithLitestream('with Litestream as a permanent reader', () => {
  const home = useServiceHome();

  it('the service starts after a stop and after a kill, and the replica has every acknowledged plant', async () => {
    const creations: CreateRequest[] = [];
    const replica = `file://${join(home.folder, 'replica')}`;
    let service = await home.start();
    const program = require.resolve('@flydotio/litestream-linux-x64/litestream');
    const litestream = new TestProcess([program, 'replicate', home.file, replica], { env: {} });
    await createMany(2000, service, creations);
    await litestream.waitForOutput(/snapshot written/, 'stderr');

    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      await service.end(signal);
      service = await home.start();
      await createMany(2000, service, creations);
    }

    await service.end();
    await litestream.end();
    const restored = join(home.folder, 'restored.db');
    expect(await run(program, ['restore', '-o', restored, replica])).toMatchObject({ code: 0 });
    expect(creations.filter(({ outcome }) => outcome === 200)).toHaveLength(6000);
    expectOutcomesMatch(creations, home.plants());
    expect(readPlants(restored)).toEqual(home.plants());
  });
});
