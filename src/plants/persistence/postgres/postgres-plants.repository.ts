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
import { migrate } from './postgres.migrations';
import { AbandonedError, StatementWatch } from './statement-watch';
import { withTimeout } from './with-timeout';

/** Milliseconds that bringing the schema up to date may take, locks included. */
const MIGRATION_TIMEOUT = 30_000;

/** Milliseconds that a look at the hosts may take, while a statement is late. */
const LOOK_TIMEOUT = 5000;

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

  private readonly statements = new StatementWatch({
    election: () => this.hosts.election,
    heardAt: () => this.hosts.heardAt,
    look: (isOverdue) => this.look(isOverdue),
    onSilence: () => {
      this.breaker.open(
        new Error(`${this.hosts.name}: a statement waits, and the host has fallen silent.`),
      );
    },
  });

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

  private async prepare(signal: AbortSignal, prefersOthers = false): Promise<void> {
    await this.hosts.selectWritable(prefersOthers);
    const client = await this.hosts.connect();
    try {
      await withTimeout(migrate(client), MIGRATION_TIMEOUT, signal);
    } catch (error) {
      client.release(true);
      throw toOperatorError(this.hosts.name, error);
    }
    client.release();
    this.statements.abandonLost();
  }

  /**
   * Called while a statement is late: its host may have fallen silent, and another one taken over. A
   * host that answers but commits nothing may be a former primary, which waits for its standby.
   */
  private async look(isOverdue: boolean): Promise<void> {
    // Else the breaker looks.
    if (this.breaker.fault) return;
    const { name, election } = this.hosts;
    try {
      await this.prepare(AbortSignal.timeout(LOOK_TIMEOUT), isOverdue);
      if (this.hosts.election === election) return;
      this.logger.warn(`${this.hosts.name}: in use now, since ${name} does not commit.`);
    } catch {
      // A late statement alone is no fault; a silent host is one soon.
    }
  }

  private assertUsable(): void {
    if (this.breaker.fault) throw new UnavailableError({ cause: this.breaker.fault });
  }

  /** @throws UnavailableError when there is no session that accepts writes */
  private async connect(): Promise<PoolClient> {
    this.assertUsable();
    try {
      return await this.hosts.connect();
    } catch (cause) {
      if (!isPoolExhausted(cause)) this.breaker.open(cause as Error);
      throw new UnavailableError({ cause });
    }
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
    const { election } = this.hosts;
    // What befalls a session says nothing about a host that was chosen later.
    const openBreaker = (fault: Error, canProbe?: boolean): void => {
      if (this.hosts.election === election) this.breaker.open(fault, canProbe);
    };

    for (let attempt = 1; ; attempt++) {
      const { usesPreparedStatement } = this;
      try {
        const inserted = await this.statements.answerTo(
          insert(client, rows, usesPreparedStatement),
        );
        this.breaker.confirm();
        if (inserted.size === rows.length) return all(true);
        return new Map(rows.map(({ id }) => [id, inserted.has(String(id))]));
      } catch (error) {
        const cause = toOperatorError(this.hosts.name, error);
        if (!isServerError(error) || isAmbiguous(error) || !(await this.isAlive(client))) {
          if (!(error instanceof AbandonedError)) openBreaker(cause);
          return all(new OutcomeUnknownError({ cause }));
        }
        if (usesPreparedStatement && isPreparedStatementFault(error)) {
          this.usesPreparedStatement = false;
        } else if (isRetryable(error) && attempt < MAX_ATTEMPTS) {
          await setTimeout(Math.random() * 2 ** attempt);
        } else if (!isRowFault(error)) {
          if (!isMomentary(error)) openBreaker(cause, false);
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

  /**
   * Whether a session survived an error. If so, the server has rolled back. An error that ends the
   * session may follow a commit.
   */
  private isAlive(client: ClientBase): Promise<boolean> {
    return this.statements.answerTo(client.query('SELECT 1')).then(
      () => true,
      () => false,
    );
  }

  private async read(text: string, values: unknown[]): Promise<Plant[]> {
    const client = await this.connect();
    let result;
    try {
      result = await this.statements.answerTo(
        client.query<{ id: string; name: string; tag: string | null }>(text, values),
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
