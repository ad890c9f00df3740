import { makeFolder, removeFolder } from '../support/folder';
import { PostgresServer } from '../support/postgres';
import { ServiceProcess } from '../support/service-process';
import { until } from '../support/until';
import { brokenPromises, Writers } from '../support/writers';

jest.setTimeout(60_000);

describe('the service, while its PostgreSQL server is unavailable', () => {
  let folder: string;
  let server: PostgresServer;
  let service: ServiceProcess;
  let writers: Writers | undefined;
  beforeAll(async () => {
    folder = makeFolder();
    server = await PostgresServer.start();
  });
  afterEach(async () => {
    service.kill('SIGKILL');
    await service.ended;
    await writers?.stop();
  });
  afterAll(async () => {
    await server.remove();
    removeFolder(folder);
  });

  it('loses no acknowledged plant at a kill -9 under load, and serves again within 2 s of the server', async () => {
    service = await ServiceProcess.start(folder, { DATABASE_URL: server.url() });
    const load = new Writers([await service.url()], 32);
    writers = load;
    await until(() => load.those('acknowledged').length > 500);

    await server.stop('SIGKILL');
    await until(() => load.those('refused').length > 100);
    await server.start();
    const back = Date.now();

    await until(() => load.hasSucceededSince(back), 2000);
    await load.stop();
    expect(brokenPromises(load.creations, await server.plants())).toEqual({
      lost: [],
      refusedButStored: [],
      acknowledgedTwice: [],
    });
    service.kill('SIGTERM');
    expect(await service.ended).toEqual({ code: 0, signal: null });
  });
});
