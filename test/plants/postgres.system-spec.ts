/** Runs the service, a process, under load while PostgreSQL, from npm, fails. */
import { errorNumbers } from '../support/error-bodies';
import { expectOutcomesMatch, Load } from '../support/load';
import { PostgresServer } from '../support/postgres';
import { useServiceHome } from '../support/service-process';
import { until } from '../support/until';

describe('the service when its sessions are terminated and its PostgreSQL server is killed', () => {
  const home = useServiceHome();

  it('loses no acknowledged plant under load, and serves again when the server is back', async () => {
    const server = await PostgresServer.start();
    const service = await home.start({ DATABASE_URL: server.url() });
    const load = Load.startCompeting([await service.url()], 32);
    await until(() => load.withOutcome(200).length > 500);

    const terminate = 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity';
    for (let round = 1; round <= 5; round++) {
      const before = Date.now();
      await server.execute(`${terminate} WHERE application_name = 'plant-store'`);
      await until(() => load.hasSucceededSince(before));
    }
    await server.stop('SIGKILL');
    await until(() => load.withOutcome(errorNumbers.unavailable).length > 100);
    await server.start();
    const back = Date.now();

    await until(() => load.hasSucceededSince(back));
    await load.stop();
    expectOutcomesMatch(load.creations, await server.plants());
    expect(await service.end()).toEqual({ code: 0, signal: null });
    await server.remove();
  });
});
