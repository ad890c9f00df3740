import { hash } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { Logger, type OnApplicationShutdown } from '@nestjs/common';
import type { ClientBase, ClientConfig, PoolClient } from 'pg';
import { OutcomeUnknownError, PlantStoreError, UnavailableError } from '../../../errors';
import type { Plant } from '../../plant';
import { PlantsRepository } from '../../plants.repository';
import { GroupCommit } from '../group-commit';
import { plantBatches } from '../plant-batches';
import { StoreOpenError } from '../store-open.error';
import { CircuitBreaker } from './circuit-breaker';
import {
  isAmbiguous,
  isMomentary,
  isPoolExhausted,
  isPreparedStatementFault,
  isRetryable,
  isRowFault,
  isServerError,
  toOperatorError,
} from './postgres.errors';
import { PostgresHosts } from './postgres.hosts';
import { assertIdentity, assertSameStore, migrate } from './postgres.migrations';
import { withTimeout } from './with-timeout';

/**
 * Milliseconds until a statement without an answer is abandoned and its session closed. TCP alone
 * would take a quarter of an hour to notice a dead server. The statement is not cancelled.
 */
const STATEMENT_TIMEOUT = 30_000;

/** Milliseconds to check that a new session is in the store in use. */
const VERIFY_TIMEOUT = 2000;

/** How often a batch is tried that other transactions cause to be rolled back. */
const MAX_ATTEMPTS = 10;

/**
 * No conflict target, so that a table may enforce unique ids in any way. Ids come back as text, since
 * `binary` in the URL or in the driver's process-wide defaults asks for binary results.
 */
const INSERT = `
  INSERT INTO plants (id, name, tag)
  SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[])
  ON CONFLICT DO NOTHING
  RETURNING id::text`;

/** The name of the prepared statement. It changes with the statement. */
const INSERT_NAME = `plants-${hash('sha1', INSERT)}`;

/** Whether a plant was inserted, or why it was not or may not have been. */
type Outcome = boolean | PlantStoreError;

/**
 * Stores plants in PostgreSQL, or in a database that speaks its protocol. Each batch is one
 * statement, which is one transaction.
 */
export class PostgresPlantsRepository extends PlantsRepository implements OnApplicationShutdown {
  private readonly logger = new Logger('PlantStore');

  private readonly commits = new GroupCommit<Plant, Outcome>({
    ...plantBatches,
    commit: (batch) => this.commit(batch),
    timedOutLimit: 2,
  });

  private readonly breaker = new CircuitBreaker({
    probe: (signal) => this.prepare(signal),
    onFault: (fault) => {
      this.logger.error(fault.message);
    },
    onRecovery: () => {
      this.logger.log(`${this.hosts.name}: in use again.`);
    },
  });

  private readonly hosts: PostgresHosts;

  /** The store in use, once there is one. It may have no identity. */
  private store: { readonly identity: string | undefined } | undefined;
  /** The sessions that turned out to be in that store. */
  private readonly verified = new WeakSet<PoolClient>();

  /**
   * Whether sessions prepare the statement, which saves the server a quarter of its time. A proxy that
   * pools transactions may not support that. The first batch to fail for it turns it off for good.
   */
  private usesPreparedStatement = true;

  private constructor(where: string | ClientConfig) {
    super();
    this.hosts = PostgresHosts.of(where, (fault) => {
      this.breaker.open(fault);
    });
  }

  /**
   * Connects and brings the schema up to date. A database that cannot be used is not an error: the
   * repository is not ready then, and keeps trying.
   *
   * @param where a connection URL with one or more hosts, or settings of the driver
   * @throws StoreOpenError when the URL or the settings are invalid
   */
  static async open(where: string | ClientConfig): Promise<PostgresPlantsRepository> {
    let repository;
    try {
      repository = new PostgresPlantsRepository(where);
    } catch (cause) {
      throw new StoreOpenError('The PostgreSQL settings cannot be used', cause);
    }
    await repository.breaker.start();
    return repository;
  }

  override isReady(): boolean {
    return this.breaker.fault === undefined && !this.commits.isStuck;
  }

  override queueLength(): number {
    return this.commits.queueLength;
  }

  override isFull(): boolean {
    return this.commits.isFull;
  }

  async insert(plant: Plant): Promise<boolean> {
    this.assertUsable();
    const outcome = await this.commits.submit(plant);
    if (outcome instanceof PlantStoreError) throw outcome;
    return outcome;
  }

  async find(id: bigint): Promise<Plant | undefined> {
    const [plant] = await this.read('SELECT id::text, name, tag FROM plants WHERE id = $1', [id]);
    return plant;
  }

  page(after: bigint | undefined, limit: number): Promise<Plant[]> {
    return after === undefined
      ? this.read('SELECT id::text, name, tag FROM plants ORDER BY plants.id LIMIT $1', [limit])
      : this.read(
          'SELECT id::text, name, tag FROM plants WHERE id > $2 ORDER BY plants.id LIMIT $1',
          [limit, after],
        );
  }

  /** Commits the plants accepted so far, then closes all sessions. Nest calls it once HTTP has stopped. */
  async onApplicationShutdown(): Promise<void> {
    await this.commits.close();
    this.breaker.stop();
    await this.hosts.close();
  }

  private async prepare(signal: AbortSignal): Promise<void> {
    await this.hosts.selectWritable();
    const client = await this.hosts.connect();
    try {
      await withTimeout(this.useStore(client), STATEMENT_TIMEOUT, signal);
    } catch (error) {
      client.release(true);
      throw toOperatorError(this.hosts.name, error);
    }
    client.release();
  }

  /** Creates and migrates the first store that is found. Later it has to be the same one. */
  private async useStore(client: PoolClient): Promise<void> {
    if (this.store) await assertSameStore(client, this.store.identity);
    else this.store = { identity: await migrate(client) };
    this.verified.add(client);
  }

  private assertUsable(): void {
    if (this.breaker.fault) throw new UnavailableError({ cause: this.breaker.fault });
  }

  /** @throws UnavailableError when there is no session that accepts writes */
  private async connect(): Promise<PoolClient> {
    this.assertUsable();
    try {
      const client = await this.hosts.connect();
      if (!this.verified.has(client)) await this.verify(client);
      return client;
    } catch (cause) {
      if (!isPoolExhausted(cause)) this.breaker.open(cause as Error);
      throw new UnavailableError({ cause });
    }
  }

  /** A new session may lead to another database: behind a name or a proxy it can be replaced. */
  private async verify(client: PoolClient): Promise<void> {
    try {
      await withTimeout(assertIdentity(client, this.store?.identity), VERIFY_TIMEOUT);
    } catch (error) {
      client.release(true);
      throw toOperatorError(this.hosts.name, error);
    }
    this.verified.add(client);
  }

  private async commit(batch: readonly Plant[]): Promise<Outcome[]> {
    // Of plants with the same id, the first is tried. Sorted, so that instances cannot deadlock.
    const rows = [...new Map(batch.toReversed().map((plant) => [plant.id, plant])).values()];
    rows.sort((one, other) => (one.id < other.id ? -1 : 1));

    const client = await this.connect();
    const outcomes = await this.insertRows(client, rows);
    client.release(isLost(outcomes));

    return batch.map(({ id }) => {
      const outcome = outcomes.get(id) ?? false;
      // The next plant with this id was not tried.
      if (outcome === true) outcomes.set(id, false);
      else if (outcome !== false) outcomes.set(id, new UnavailableError({ cause: outcome }));
      return outcome;
    });
  }

  /** Commits rows with different ids. A row that the database refuses fails alone. */
  private async insertRows(
    client: ClientBase,
    rows: readonly Plant[],
  ): Promise<Map<bigint, Outcome>> {
    const all = (outcome: Outcome): Map<bigint, Outcome> =>
      new Map(rows.map(({ id }) => [id, outcome]));

    for (let attempt = 1; ; attempt++) {
      const { usesPreparedStatement } = this;
      try {
        const inserted = await withTimeout(
          insert(client, rows, usesPreparedStatement),
          STATEMENT_TIMEOUT,
        );
        this.breaker.confirm();
        if (inserted.size === rows.length) return all(true);
        return new Map(rows.map(({ id }) => [id, inserted.has(String(id))]));
      } catch (error) {
        const cause = toOperatorError(this.hosts.name, error);
        if (!isServerError(error) || isAmbiguous(error) || !(await isAlive(client))) {
          this.breaker.open(cause);
          return all(new OutcomeUnknownError({ cause }));
        }
        if (usesPreparedStatement && isPreparedStatementFault(error)) {
          this.usesPreparedStatement = false;
        } else if (isRetryable(error) && attempt < MAX_ATTEMPTS) {
          await setTimeout(Math.random() * 2 ** attempt);
        } else if (!isRowFault(error)) {
          if (!isMomentary(error)) this.breaker.open(cause, false);
          return all(new UnavailableError({ cause }));
        } else if (rows.length === 1) {
          return all(new PlantStoreError('internal', undefined, { cause }));
        } else {
          const middle = rows.length >> 1;
          const outcomes = await this.insertRows(client, rows.slice(0, middle));
          const others = rows.slice(middle);
          // If the session was lost meanwhile, the other half was never sent.
          const rest = isLost(outcomes)
            ? others.map(({ id }) => [id, new UnavailableError({ cause })] as const)
            : await this.insertRows(client, others);
          return new Map([...outcomes, ...rest]);
        }
      }
    }
  }

  private async read(text: string, values: unknown[]): Promise<Plant[]> {
    const client = await this.connect();
    let result;
    try {
      result = await withTimeout(
        client.query<{ id: string; name: string; tag: string | null }>(text, values),
        STATEMENT_TIMEOUT,
      );
    } catch (error) {
      client.release(true);
      throw new UnavailableError({ cause: toOperatorError(this.hosts.name, error) });
    }
    client.release();
    return result.rows.map(({ id, name, tag }) => ({
      id: BigInt(id),
      name,
      ...(tag === null ? {} : { tag }),
    }));
  }
}

/** Whether the session was lost while it had a statement to answer. */
function isLost(outcomes: ReadonlyMap<bigint, Outcome>): boolean {
  return [...outcomes.values()].some((outcome) => outcome instanceof OutcomeUnknownError);
}

/**
 * Inserts rows in one transaction. Resolves once it is committed, to the ids that were free.
 *
 * The driver resolves at the server's ReadyForQuery, which follows the commit. Rows and
 * CommandComplete precede the commit in the extended protocol.
 */
async function insert(
  client: ClientBase,
  rows: readonly Plant[],
  usesPreparedStatement: boolean,
): Promise<Set<string>> {
  const routines = new Set<string | undefined>();
  const onNotice = ({ routine }: { routine?: string | undefined }): void => {
    routines.add(routine);
  };
  client.on('notice', onNotice);
  try {
    const result = await client.query<[id: string]>({
      ...(usesPreparedStatement ? { name: INSERT_NAME } : {}),
      text: INSERT,
      rowMode: 'array',
      values: [rows.map(({ id }) => id), rows.map(({ name }) => name), rows.map(({ tag }) => tag)],
    });
    // If the wait for the standby is cancelled, the server warns and reports success.
    if (routines.has('SyncRepWaitForLSN')) {
      throw new Error('the wait for the synchronous standby was cancelled');
    }
    return new Set(result.rows.map(([id]) => id));
  } finally {
    client.off('notice', onNotice);
  }
}

/**
 * Whether a session survived an error. If so, the server has rolled back. An error that ends the
 * session may follow a commit.
 */
function isAlive(client: ClientBase): Promise<boolean> {
  return withTimeout(client.query('SELECT 1'), STATEMENT_TIMEOUT).then(
    () => true,
    () => false,
  );
}
