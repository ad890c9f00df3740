import { hash } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { Logger, type OnApplicationShutdown } from '@nestjs/common';
import type { ClientBase, CustomTypesConfig, Pool, PoolClient } from 'pg';
import { OutcomeUnknownError, PlantStoreError, UnavailableError } from '../../../errors';
import type { Plant } from '../../plant';
import { PlantsRepository } from '../../plants.repository';
import { CircuitBreaker } from './circuit-breaker';
import { GroupCommit } from '../group-commit';
import { inTime } from './with-timeout';
import { plantBatches } from '../plant-batches';
import {
  isAmbiguous,
  isPoolExhausted,
  isNameFault,
  isPassing,
  isRowFault,
  isServerError,
  isTransient,
  toOperatorError,
} from './postgres.errors';
import { PostgresHosts } from './postgres.hosts';
import { migrate } from './postgres.migrations';
import { StoreOpenError } from '../store-open.error';

/**
 * Milliseconds after which a statement is given up with its connection: the server may have vanished
 * without a word, and the socket would notice in a quarter of an hour. The server is not told.
 */
const STATEMENT_TIMEOUT = 30_000;

/** How often a batch is tried that others keep rolling back. */
const ATTEMPTS = 10;

/**
 * Without a conflict target, a table may enforce the id in whichever way it can. Ids come back as
 * texts, since the pool of a host may ask for binary results.
 */
const INSERT = `
  INSERT INTO plants (id, name, tag)
  SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[])
  ON CONFLICT DO NOTHING
  RETURNING id::text`;

/** The name under which a session prepares the statement, and never another one. */
const INSERT_NAME = `plants-${hash('sha1', INSERT)}`;

/** Values as texts, whatever parsers the host program has set: ids stay exact. */
const AS_TEXT = { getTypeParser: () => String } as unknown as CustomTypesConfig;

/** Whether a plant was kept, or why nobody can say so. */
type Outcome = boolean | PlantStoreError;

/**
 * Keeps plants in PostgreSQL, or in a database that speaks its protocol. Each batch is one
 * statement, which is one transaction.
 */
export class PostgresPlantsRepository extends PlantsRepository implements OnApplicationShutdown {
  private readonly logger = new Logger('PlantStore');

  private readonly commits = new GroupCommit<Plant, Outcome>({
    ...plantBatches,
    commit: (batch) => this.commit(batch),
    lateLimit: 2,
  });

  private readonly breaker = new CircuitBreaker({
    probe: (ending) => this.prepare(ending),
    onFault: (fault) => {
      this.logger.error(fault.message);
    },
    onRecovery: () => {
      this.logger.log(`${this.hosts.name}: in use again.`);
    },
  });

  private readonly hosts: PostgresHosts;

  /**
   * Whether the statement has a name, by which a session prepares it once; that saves the server a
   * quarter of its time. Behind a proxy that hands each transaction to another session and knows
   * nothing of names, the first batch to meet a wrong session ends it for good.
   */
  private named = true;

  private constructor(where: string | Pool) {
    super();
    this.hosts = PostgresHosts.of(where, (fault) => {
      this.breaker.open(fault);
    });
  }

  /**
   * Connects and brings the schema up to date. A database that cannot be used is not an error: the
   * repository is not ready then, and goes on trying.
   *
   * @param where a connection URL with one or more hosts, or a pool of the host program's
   * @throws StoreOpenError when the URL itself cannot be used
   */
  static async open(where: string | Pool): Promise<PostgresPlantsRepository> {
    let repository;
    try {
      repository = new PostgresPlantsRepository(where);
    } catch (cause) {
      throw new StoreOpenError('The PostgreSQL URL cannot be used', cause);
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

  /** Nest calls this once HTTP has stopped: what was accepted is committed, then all is closed. */
  async onApplicationShutdown(): Promise<void> {
    await this.commits.close();
    this.breaker.stop();
    await this.hosts.close();
  }

  private async prepare(ending: AbortSignal): Promise<void> {
    await this.hosts.elect();
    const client = await this.hosts.connect();
    try {
      await inTime(migrate(client), STATEMENT_TIMEOUT, ending);
    } catch (error) {
      client.release(true);
      throw toOperatorError(this.hosts.name, error);
    }
    client.release();
  }

  private assertUsable(): void {
    if (this.breaker.fault) throw new UnavailableError({ cause: this.breaker.fault });
  }

  /** A session that takes writes, at once or not at all. */
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
    // Of those that want the same id, the first is tried. Sorted, no two instances can wait for
    // each other.
    const rows = [...new Map(batch.toReversed().map((plant) => [plant.id, plant])).values()];
    rows.sort((one, other) => (one.id < other.id ? -1 : 1));

    const client = await this.connect();
    const outcomes = await this.insertRows(client, rows);
    client.release(isLost(outcomes));

    return batch.map(({ id }) => {
      const outcome = outcomes.get(id) ?? false;
      // The next one that wants the id was not tried.
      if (outcome === true) outcomes.set(id, false);
      else if (outcome !== false) outcomes.set(id, new UnavailableError({ cause: outcome }));
      return outcome;
    });
  }

  /** Commits rows of different ids; one that the database does not take fails alone. */
  private async insertRows(
    client: ClientBase,
    rows: readonly Plant[],
  ): Promise<Map<bigint, Outcome>> {
    const all = (outcome: Outcome): Map<bigint, Outcome> =>
      new Map(rows.map(({ id }) => [id, outcome]));

    for (let attempt = 1; ; attempt++) {
      const { named } = this;
      try {
        const kept = await inTime(insert(client, rows, named), STATEMENT_TIMEOUT);
        this.breaker.confirm();
        if (kept.size === rows.length) return all(true);
        return new Map(rows.map(({ id }) => [id, kept.has(String(id))]));
      } catch (error) {
        const cause = toOperatorError(this.hosts.name, error);
        if (!isServerError(error) || isAmbiguous(error) || !(await isAlive(client))) {
          this.breaker.open(cause);
          return all(new OutcomeUnknownError({ cause }));
        }
        if (named && isNameFault(error)) {
          this.named = false;
        } else if (isTransient(error) && attempt < ATTEMPTS) {
          await setTimeout(Math.random() * 2 ** attempt);
        } else if (!isRowFault(error)) {
          if (!isPassing(error)) this.breaker.open(cause, true);
          return all(new UnavailableError({ cause }));
        } else if (rows.length === 1) {
          return all(new PlantStoreError('internal', undefined, { cause }));
        } else {
          const middle = rows.length >> 1;
          const outcomes = await this.insertRows(client, rows.slice(0, middle));
          const others = rows.slice(middle);
          // A session that was lost meanwhile was not asked to take the others.
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
      const query = { text, values, types: AS_TEXT };
      result = await inTime(
        client.query<{ id: string; name: string; tag: string | null }>(query),
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

/** Whether the session was lost with a batch under way. */
function isLost(outcomes: ReadonlyMap<bigint, Outcome>): boolean {
  return [...outcomes.values()].some((outcome) => outcome instanceof OutcomeUnknownError);
}

/**
 * Inserts rows in one transaction and resolves, once it is committed, to the ids that were free.
 *
 * The driver resolves at the server's ReadyForQuery, which follows the commit; in the extended
 * protocol the rows and CommandComplete precede it.
 */
async function insert(
  client: ClientBase,
  rows: readonly Plant[],
  named: boolean,
): Promise<Set<string>> {
  const routines = new Set<string | undefined>();
  const onNotice = ({ routine }: { routine?: string | undefined }): void => {
    routines.add(routine);
  };
  client.on('notice', onNotice);
  try {
    const result = await client.query<[id: string]>({
      ...(named ? { name: INSERT_NAME } : {}),
      text: INSERT,
      rowMode: 'array',
      values: [rows.map(({ id }) => id), rows.map(({ name }) => name), rows.map(({ tag }) => tag)],
      types: AS_TEXT,
    });
    // An operator who cancels a commit that waits for its standby has it reported as a success.
    if (routines.has('SyncRepWaitForLSN')) {
      throw new Error('the wait for the synchronous standby was cancelled');
    }
    return new Set(result.rows.map(([id]) => id));
  } finally {
    client.off('notice', onNotice);
  }
}

/**
 * Whether a session goes on after an error. If so, the server has rolled back; an error that ends
 * the session may come from the other side of a commit.
 */
function isAlive(client: ClientBase): Promise<boolean> {
  return inTime(client.query('SELECT 1'), STATEMENT_TIMEOUT).then(
    () => true,
    () => false,
  );
}
