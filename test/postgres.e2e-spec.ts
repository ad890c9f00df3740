import { TestApplication } from './support/application';
import { errorBodies } from './support/error-bodies';
import { makeFolder, removeFolder } from './support/folder';
import { PostgresServer } from './support/postgres';
import { ServiceProcess } from './support/service-process';
import { PostgresStore } from './support/stores';
import { until } from './support/until';
import { brokenPromises, Writers } from './support/writers';

jest.setTimeout(60_000);

describe('two instances on one PostgreSQL database', () => {
  it('give each of 50 ids to one of 200 creations', async () => {
    const store = await PostgresStore.start();
    const first = await TestApplication.start({}, store);
    const second = await TestApplication.start({}, store);

    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, at) =>
        (at % 2 ? first : second).post(`{"id":${at % 50},"name":"Fern ${at}"}`),
      ),
    );

    const accepted = answers.filter(({ statusCode }) => statusCode === 200);
    const refused = answers.filter(({ statusCode }) => statusCode === 400);
    expect(accepted).toHaveLength(50);
    expect(refused.map((answer) => answer.json<object>())).toEqual(
      Array(150).fill(errorBodies.idTaken),
    );
    expect((await store.plants()).map(({ name }) => name).toSorted()).toEqual(
      accepted.map((answer) => answer.json<{ name: string }>().name).toSorted(),
    );
    await second.app.close();
    await first.stop();
  });
});

describe('the service, while its PostgreSQL server is away', () => {
  let folder: string;
  let server: PostgresServer;
  beforeAll(async () => {
    folder = makeFolder();
    server = await PostgresServer.start();
  });
  afterAll(async () => {
    await server.remove();
    removeFolder(folder);
  });

  it('answers 503 at once, and says when to try again', async () => {
    const store = await PostgresStore.start();
    const application = await TestApplication.start({}, store);
    await store.stop();

    const response = await application.post('{"id":1,"name":"Fern"}');

    expect(response.statusCode).toBe(503);
    expect(response.json()).toEqual(errorBodies.unavailable);
    expect(response.headers['retry-after']).toBe('1');
    await application.stop();
  });

  it('loses nothing at a kill -9 under load, and serves again 2 s after the server', async () => {
    const service = await ServiceProcess.start(folder, { DATABASE_URL: server.url() });
    const writers = new Writers([await service.url()], 32);
    await until(() => writers.those('acknowledged').length > 500);

    await server.stop('SIGKILL');
    await until(() => writers.those('refused').length > 100);
    await server.start();
    const back = Date.now();

    await until(() => writers.hasSucceededSince(back), 2000);
    await writers.stop();
    expect(brokenPromises(writers.creations, await server.plants())).toEqual({
      lost: [],
      refusedButStored: [],
      acknowledgedTwice: [],
    });
    service.kill('SIGTERM');
    expect(await service.ended).toEqual({ code: 0, signal: null });
  });

  it('starts all the same, and never logs the password', async () => {
    const url = server.url().replace('postgres@', 'nobody:very-secret@');
    const service = await ServiceProcess.start(folder, { DATABASE_URL: url, LOG_LEVEL: 'trace' });

    await until(() => service.stdout.includes('role \\"nobody\\" does not exist'));
    service.kill('SIGTERM');

    expect(await service.ended).toEqual({ code: 0, signal: null });
    expect(service.stdout + service.stderr).not.toContain('very-secret');
  });
});
