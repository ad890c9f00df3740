import { hash } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { Logger, type OnApplicationShutdown } from '@nestjs/common';
import type { ClientBase, ClientConfig, PoolClient, QueryConfig } from 'pg';
import { OutcomeUnknownError, PlantStoreError, UnavailableError } from '../../../errors';
import type { Plant } from '../../plant';
import { type Insertion, PlantsRepository } from '../../plants.repository';
import { GroupCommit } from '../group-commit';
import { hasKeys, type KeyedPlant, plantBatches, repetitionOutcome } from '../plant-batches';
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
import { AbandonedError, StatementWatch } from './statement-watch';
import { withTimeout } from './with-timeout';

/** Milliseconds that bringing the schema up to date may take, locks included. */
const MIGRATION_TIMEOUT = 30_000;

/** Milliseconds that a look at the hosts may take, while a statement is late. */
const LOOK_TIMEOUT = 5000;

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

/** The names of the prepared statements. They change with the statements. */
const INSERT_NAME = nameOf(INSERT);

/** The same with idempotency keys. */
const INSERT_KEYED = `
  INSERT INTO plants (id, name, tag, idempotency_key)
  SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bytea[])
  ON CONFLICT DO NOTHING
  RETURNING id::text`;

const INSERT_KEYED_NAME = nameOf(INSERT_KEYED);

/**
 * The plants that have one of the ids and the key that goes with it, with its place in the arrays.
 *
 * Not prepared: a plan that was made while the table was small would read the whole table later.
 */
const SELECT_KEYED = `
  SELECT place::text, name, tag, current_setting('synchronous_standby_names', true)
  FROM plants
  JOIN unnest($1::bigint[], $2::bytea[]) WITH ORDINALITY AS sought (id, key, place)
    ON plants.id = sought.id AND idempotency_key = sought.key`;

/**
 * Writes a commit record and nothing else. So the commit waits until the standbys have all that was
 * written before.
 */
const WAIT_FOR_STANDBYS = "SELECT pg_logical_emit_message(true, 'plant-store', '')";

/** Whether a plant was inserted, or why it was not or may not have been. */
type RowOutcome = boolean | PlantStoreError;

/** The outcome of an insertion, or the error when it failed or its outcome is unknown. */
type Outcome = Insertion | PlantStoreError;

/**
 * Stores plants in PostgreSQL, or in a database that speaks its protocol. Each batch is one
 * statement, which is one transaction.
 */
export class PostgresPlantsRepository extends PlantsRepository implements OnApplicationShutdown {
  private readonly logger = new Logger('PlantStore');

  private readonly commits = new GroupCommit<KeyedPlant, Outcome>({
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
        new Error(
          `${this.hosts.name}: the host has stopped answering while a statement waits for it.`,
        ),
      );
    },
  });

  /** The store in use, once there is one. It may have no identity. */
  private store: { readonly identity: string | undefined } | undefined;
  /** The sessions that turned out to be in that store. */
  private readonly verified = new WeakSet<PoolClient>();

  /**
   * Whether sessions prepare the statement, which saves the server a quarter of its time. A proxy that
   * pools transactions may not support that. The first batch to fail for it turns it off for good.
   */
  private usesPreparedStatement = true;

  /** Whether the table has a column for idempotency keys. */
  private keepsKeys = true;

  /**
   * Whether most plants with a key of the latest batch that had any were stored before. Then those of
   * the next batch are looked for first, and only the others are inserted: one statement for replays
   * instead of two.
   */
  private expectsReplays = false;

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
    return (await this.submit(plant)) === 'created';
  }

  override insertOnce(plant: Plant, key: string): Promise<Insertion> {
    const { id, name, tag } = plant;
    return this.submit(this.keepsKeys ? { id, name, tag, key } : plant);
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

  private async submit(plant: KeyedPlant): Promise<Insertion> {
    this.assertUsable();
    const outcome = await this.commits.submit(plant);
    if (outcome instanceof PlantStoreError) throw outcome;
    return outcome;
  }

  private async prepare(signal: AbortSignal, prefersOthers = false): Promise<void> {
    await this.hosts.selectWritable(prefersOthers);
    const client = await this.hosts.connect();
    try {
      await withTimeout(this.useStore(client), MIGRATION_TIMEOUT, signal);
    } catch (error) {
      client.release(true);
      throw toOperatorError(this.hosts.name, error);
    }
    client.release();
    this.statements.abandonLost();
  }

  /**
   * Called while a statement is late: its host may have stopped answering, and another one may have
   * taken over. A host that answers but does not commit may be a former primary that waits for its
   * standby.
   */
  private async look(isOverdue: boolean): Promise<void> {
    // While there is a fault, the breaker probes the hosts.
    if (this.breaker.fault) return;
    const { name, election } = this.hosts;
    try {
      await this.prepare(AbortSignal.timeout(LOOK_TIMEOUT), isOverdue);
      if (this.hosts.election === election) return;
      this.logger.warn(`${this.hosts.name}: in use now, because ${name} does not commit.`);
    } catch {
      // A late statement alone is not a fault. A host that stops answering becomes one soon.
    }
  }

  /** Creates and migrates the first store that is found. Later it has to be the same one. */
  private async useStore(client: PoolClient): Promise<void> {
    const table = this.store
      ? await assertSameStore(client, this.store.identity)
      : await migrate(client);
    this.store ??= table;
    this.verified.add(client);
    if (this.keepsKeys && !table.hasKeys) {
      this.logger.warn(
        `${this.hosts.name}: the Idempotency-Key header is ignored, because the table plants has no column idempotency_key of type bytea.`,
      );
    }
    this.keepsKeys = table.hasKeys;
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

  private async commit(batch: readonly KeyedPlant[]): Promise<Outcome[]> {
    const keyed = batch.filter(({ key }) => key !== undefined);
    const client = await this.connect();
    let stored = new Map<bigint, KeyedPlant>();
    if (keyed.length > 0 && this.expectsReplays) {
      try {
        stored = await this.findStored(client, keyed);
      } catch (error) {
        client.release(true);
        throw error;
      }
    }

    // Of plants with the same id, the first is tried. Sorted, so that instances cannot deadlock.
    const free = batch.filter(({ id }) => !stored.has(id));
    const rows = [...new Map(free.toReversed().map((plant) => [plant.id, plant])).values()];
    rows.sort((one, other) => (one.id < other.id ? -1 : 1));
    const outcomes = await this.insertRows(client, rows);
    let isSessionUsable = !isLost(outcomes);

    const refused = keyed.filter(({ id }) => outcomes.get(id) === false);
    if (refused.length > 0) {
      try {
        if (!isSessionUsable) throw new UnavailableError();
        const found = await this.findStored(client, refused);
        stored = new Map([...stored, ...found]);
      } catch (error) {
        isSessionUsable = false;
        for (const { id } of refused) outcomes.set(id, error as UnavailableError);
      }
    }
    client.release(!isSessionUsable);
    if (keyed.length > 0) this.expectsReplays = stored.size >= keyed.length / 2;

    return batch.map((plant) => {
      const { id } = plant;
      const outcome = outcomes.get(id) ?? false;
      if (outcome === false) return repetitionOutcome(stored.get(id), plant);
      if (outcome === true) {
        outcomes.set(id, false);
        stored.set(id, plant);
        return 'created';
      }
      // The next plant with this id was not tried.
      outcomes.set(id, new UnavailableError({ cause: outcome }));
      return outcome;
    });
  }

  /**
   * Finds the plants that have the ids of other plants, and the same keys.
   *
   * It is a statement of its own, so that after an insert it sees those whose commit that has waited for.
   *
   * @returns by id, once they are as durable as plants that this session has inserted
   * @throws UnavailableError when the database does not answer
   */
  private async findStored(
    client: ClientBase,
    plants: readonly KeyedPlant[],
  ): Promise<Map<bigint, KeyedPlant>> {
    const { election } = this.hosts;
    try {
      const { rows } = await this.statements.answerTo(
        client.query<StoredRow>({
          text: SELECT_KEYED,
          values: [plants.map(({ id }) => id), toByteaArray(plants)],
          rowMode: 'array',
        }),
      );
      // A plant is visible once its commit has been replicated. But it is visible before, if the wait
      // for the standby was cancelled, or if the server has crashed in it and started again.
      if (rows.some(([, , , standbys]) => Boolean(standbys))) {
        await this.statements.answerTo(commitOn(client, { text: WAIT_FOR_STANDBYS }));
      }
      const stored = new Map<bigint, KeyedPlant>();
      for (const [place, name, tag] of rows) {
        const sought = plants[Number(place) - 1];
        if (sought) stored.set(sought.id, { ...sought, name, tag: tag ?? undefined });
      }
      return stored;
    } catch (error) {
      const cause = toOperatorError(this.hosts.name, error);
      if (!isServerError(error)) this.openBreaker(election, cause);
      else if (!isMomentary(error)) this.openBreaker(election, cause, false);
      throw new UnavailableError({ cause });
    }
  }

  /** The fault of a session says nothing about a host that was selected after it. */
  private openBreaker(election: number, fault: Error, canProbe?: boolean): void {
    if (this.hosts.election === election) this.breaker.open(fault, canProbe);
  }

  /** Commits rows with different ids. A row that the database refuses fails alone. */
  private async insertRows(
    client: ClientBase,
    rows: readonly KeyedPlant[],
  ): Promise<Map<bigint, RowOutcome>> {
    const all = (outcome: RowOutcome): Map<bigint, RowOutcome> =>
      new Map(rows.map(({ id }) => [id, outcome]));
    const { election } = this.hosts;

    if (rows.length === 0) return new Map();
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
          if (!(error instanceof AbandonedError)) this.openBreaker(election, cause);
          return all(new OutcomeUnknownError({ cause }));
        }
        if (usesPreparedStatement && isPreparedStatementFault(error)) {
          this.usesPreparedStatement = false;
        } else if (isRetryable(error) && attempt < MAX_ATTEMPTS) {
          await setTimeout(Math.random() * 2 ** attempt);
        } else if (!isRowFault(error)) {
          if (!isMomentary(error)) this.openBreaker(election, cause, false);
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
      result = await this.statements.answerTo(client.query<PlantRow>(text, values));
    } catch (error) {
      client.release(true);
      throw new UnavailableError({ cause: toOperatorError(this.hosts.name, error) });
    }
    client.release();
    return result.rows.map(toPlant);
  }
}

function nameOf(statement: string): string {
  return `plants-${hash('sha1', statement)}`;
}

/** A row as the driver returns it. */
interface PlantRow {
  readonly id: string;
  readonly name: string;
  readonly tag: string | null;
}

/** A row of {@link SELECT_KEYED}. `standbys` is null where the server has no such setting. */
type StoredRow = [place: string, name: string, tag: string | null, standbys: string | null];

function toPlant({ id, name, tag }: PlantRow): Plant {
  return { id: BigInt(id), name, ...(tag === null ? {} : { tag }) };
}

/** The digests of keys as PostgreSQL writes an array of bytea: the driver would escape each one. */
function toByteaArray(plants: readonly KeyedPlant[]): string {
  const digests = plants.map(({ key }) =>
    key === undefined ? 'NULL' : `"\\\\x${hash('sha256', key)}"`,
  );
  return `{${digests.join(',')}}`;
}

/** Whether the session was lost while it had a statement to answer. */
function isLost(outcomes: ReadonlyMap<bigint, RowOutcome>): boolean {
  return [...outcomes.values()].some((outcome) => outcome instanceof OutcomeUnknownError);
}

/** Inserts rows in one transaction. Resolves once it is committed, to the ids that were free. */
async function insert(
  client: ClientBase,
  rows: readonly KeyedPlant[],
  usesPreparedStatement: boolean,
): Promise<Set<string>> {
  const isKeyed = hasKeys(rows);
  const text = isKeyed ? INSERT_KEYED : INSERT;
  const values: unknown[] = [
    rows.map(({ id }) => id),
    rows.map(({ name }) => name),
    rows.map(({ tag }) => tag),
  ];
  if (isKeyed) values.push(toByteaArray(rows));
  const result = await commitOn<[id: string]>(client, {
    ...(usesPreparedStatement ? { name: isKeyed ? INSERT_KEYED_NAME : INSERT_NAME } : {}),
    text,
    values,
  });
  return new Set(result.map(([id]) => id));
}

/**
 * Runs a statement that is a transaction of its own. Resolves once it is committed, to its rows.
 *
 * The driver resolves at the server's ReadyForQuery, which follows the commit. Rows and
 * CommandComplete precede the commit in the extended protocol.
 */
async function commitOn<Row extends unknown[]>(
  client: ClientBase,
  query: QueryConfig,
): Promise<Row[]> {
  const routines = new Set<string | undefined>();
  const onNotice = ({ routine }: { routine?: string | undefined }): void => {
    routines.add(routine);
  };
  client.on('notice', onNotice);
  try {
    const result = await client.query<Row>({ ...query, rowMode: 'array' });
    // If the wait for the standby is cancelled, the server warns and reports success.
    if (routines.has('SyncRepWaitForLSN')) {
      throw new Error('the wait for the synchronous standby was cancelled');
    }
    return result.rows;
  } finally {
    client.off('notice', onNotice);
  }
}
