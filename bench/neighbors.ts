import { plantStore } from './contestants';
import { type Run, stop } from './race';
import { connections, type Load, Server, TOKEN } from './server';
import { type Measured, type Subject, takeTurns, type Turn } from './statistics';

/** An id that somebody else has inserted and not committed. */
const LOCKED_ID = 1;

/** Measures how one row or session in trouble changes what the others get. */
export async function neighbors(run: Run): Promise<readonly Measured[]> {
  const { postgres } = run.databases;
  const database = await run.databases.newPostgresDatabase();
  const server = await Server.start(plantStore.postgres, postgres.url(database));
  await server.warmUp();
  await postgres.execute("ALTER TABLE plants ADD CHECK (name <> 'Weed')", database);
  const load = connections(64, run.duration);
  const under = (name: string, options: Partial<Load> = {}): Subject => ({
    name,
    turn: () => server.measure({ ...load, ...options }),
  });

  const measured = await takeTurns(
    [
      under('nobody misbehaves'),
      { name: 'one locked row', turn: () => withLockedRow(run, server, database, load) },
      under('1% rejected rows', { rejectedPercent: 1 }),
      under('20% rejected rows', { rejectedPercent: 20 }),
      {
        name: 'one session terminated each second',
        turn: () => withTerminations(run, server, database, load),
      },
    ],
    run.rounds,
  );
  await stop(server);
  return measured;
}

/** Measures while a transaction has an id, and a client retries it. */
async function withLockedRow(
  { databases }: Run,
  server: Server,
  database: string,
  load: Load,
): Promise<Turn> {
  const blocker = await databases.postgres.connect(database);
  await blocker.query(`BEGIN; INSERT INTO plants VALUES (${LOCKED_ID}, 'Fern')`);
  const retrying = new AbortController();
  const retries = retryUntil(retrying.signal, server.port);
  const turn = await server.measure(load);
  retrying.abort();
  await blocker.query('ROLLBACK');
  await blocker.end();
  await retries;
  await databases.postgres.execute(`DELETE FROM plants WHERE id = ${LOCKED_ID}`, database);
  return turn;
}

/** Sends create requests with the locked id, one after the other. */
async function retryUntil(signal: AbortSignal, port: number): Promise<void> {
  while (!signal.aborted) {
    const response = await fetch(`http://127.0.0.1:${port}/plants`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${TOKEN}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ id: LOCKED_ID, name: 'Fern' }),
    });
    await response.arrayBuffer();
  }
}

/** Measures while each second one session is terminated. The requests of its batch get 504, which are not counted. */
async function withTerminations(
  { databases }: Run,
  server: Server,
  database: string,
  load: Load,
): Promise<Turn> {
  const terminate = `
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = '${database}' AND application_name = 'plant-store' ORDER BY random() LIMIT 1`;
  const timer = setInterval(() => void databases.postgres.execute(terminate), 1000);
  try {
    return await server.measure({ ...load, mayLose: true });
  } finally {
    clearInterval(timer);
  }
}
