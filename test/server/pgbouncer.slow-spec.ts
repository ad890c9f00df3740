/** Tests the service on PostgreSQL behind PgBouncer. It needs the package pgbouncer of Debian. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { errorNumbers } from '../support/error-bodies';
import { findFreePort } from '../support/free-port';
import { expectOutcomesMatch, Load } from '../support/load';
import { beforeInsert } from '../plants/postgres-statements';
import { PostgresServer } from '../support/postgres';
import { useServiceHome } from '../support/service-process';
import { TestProcess } from '../support/test-process';
import { until } from '../support/until';

const END_OTHER_SESSIONS =
  'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()';

const home = useServiceHome();
let postgres: PostgresServer;
let pooler: TestProcess | undefined;
beforeEach(async () => {
  postgres = await PostgresServer.start();
});
afterEach(async () => {
  await pooler?.end('SIGKILL');
  await postgres.remove();
});

function startPooler(port: number, mode: string): TestProcess {
  const file = join(home.folder, 'pgbouncer.ini');
  const settings = [
    '[databases]',
    `* = host=127.0.0.1 port=${postgres.port} user=postgres`,
    '[pgbouncer]',
    `listen_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =`,
    `auth_type = any\npool_mode = ${mode}`,
    'server_lifetime = 1\nserver_idle_timeout = 1\nclient_idle_timeout = 1\nserver_login_retry = 1',
  ];
  writeFileSync(file, settings.join('\n'));
  // PgBouncer refuses to run as root.
  chmodSync(home.folder, 0o755);
  const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : [];
  const env = { PATH: [process.env.PATH, '/usr/sbin'].join(':') };
  pooler = new TestProcess(['pgbouncer', ...user, file], { env });
  return pooler;
}

it.each(['transaction', 'session'])(
  'loses no acknowledged plant while PgBouncer in %s mode closes sessions, is killed and starts again',
  async (mode) => {
    const port = await findFreePort();
    let proxy = startPooler(port, mode);
    const DATABASE_URL = `postgres://postgres@127.0.0.1:${port}/postgres`;
    const service = await home.start({ DATABASE_URL });
    await service.waitUntilReady();
    const urls = [await service.url()];

    const first = Load.startCompeting(urls, 16);
    // In session mode, PgBouncer ends no session of a client, so PostgreSQL ends the idle ones.
    await until(() => mode === 'session' || proxy.stderr.includes('server lifetime over'));
    await until(() => first.withOutcome(200).length > 500);
    await first.stop();
    const logins = (): number => proxy.stderr.split('login attempt').length;
    const before = logins();
    if (mode === 'session') await postgres.execute(END_OTHER_SESSIONS);
    await until(() => logins() > before);
    const afterIdle = await service.post('{"id":7,"name":"Fern"}');
    const load = Load.startCompeting(urls, 16, { round: 1 });
    await until(() => load.withOutcome(200).length > 500);
    await proxy.end('SIGKILL');
    await until(() => load.withOutcome(errorNumbers.unavailable).length > 0);
    proxy = startPooler(port, mode);
    const restarted = Date.now();
    await until(() => load.hasSucceededSince(restarted));
    await load.stop();

    const creations = [...first.creations, ...load.creations];
    expect(afterIdle.status).toBe(200);
    expect(first.withOutcome(errorNumbers.unavailable)).toEqual([]);
    expect(creations.filter(({ outcome }) => outcome === errorNumbers.internal)).toEqual([]);
    expectOutcomesMatch(creations, await postgres.plants());
  },
);

it('has the lock_timeout of its role, and rejects only the locked row, in transaction mode', async () => {
  await postgres.execute("ALTER ROLE postgres SET lock_timeout = '700ms'");
  const port = await findFreePort();
  const proxy = startPooler(port, 'transaction');
  const service = await home.start({
    DATABASE_URL: `postgres://postgres@127.0.0.1:${port}/postgres`,
  });
  await service.waitUntilReady();
  await postgres.execute(beforeInsert("NEW.tag := current_setting('lock_timeout')"));
  const blocker = await postgres.connect();
  await blocker.query("BEGIN; INSERT INTO plants VALUES (1, 'x')");
  // The next statement runs in a session that the service has not set up.
  await until(() => proxy.stderr.includes('server lifetime over'));

  const [locked, other] = await Promise.all([
    service.post('{"id":1,"name":"Fern"}'),
    service.post('{"id":2,"name":"Fern"}'),
  ]);
  const alone = await service.post('{"id":3,"name":"Fern"}');
  await blocker.end();

  expect(locked.status).toBe(503);
  expect([other.status, alone.status]).toEqual([200, 200]);
  // Plant 2 may be stored by a search for locked rows, which sets a shorter time-out of its own.
  const plants = await postgres.plants();
  expect(plants.map(({ id }) => id)).toEqual([2n, 3n]);
  expect(plants[1]?.tag).toBe('700ms');
});

it.each(['transaction', 'session'])('rejects only the rejected rows, in %s mode', async (mode) => {
  const port = await findFreePort();
  startPooler(port, mode);
  const DATABASE_URL = `postgres://postgres@127.0.0.1:${port}/postgres`;
  const service = await home.start({ DATABASE_URL });
  await service.waitUntilReady();
  await postgres.execute("ALTER TABLE plants ADD CONSTRAINT no_weeds CHECK (name <> 'Weed')");

  const names = Array.from({ length: 100 }, (_, id) => (id % 5 === 0 ? 'Weed' : 'Fern'));
  const responses = await Promise.all(
    names.map((name, id) => service.post(JSON.stringify({ id, name }))),
  );

  const statuses = responses.map(({ status }) => status);
  expect(statuses).toEqual(names.map((name) => (name === 'Weed' ? 500 : 200)));
  expect(await postgres.plants()).toHaveLength(80);
});
