import { setTimeout } from 'node:timers/promises';
import { Logger, type OnApplicationShutdown } from '@nestjs/common';
import type { ClientBase, ClientConfig, PoolClient } from 'pg';
import { OutcomeUnknownError, PlantStoreError, UnavailableError } from '../../../errors';
import type { Plant } from '../../plant';
import { type Insertion, PlantsRepository } from '../../plants.repository';
import { GroupCommit } from '../group-commit';
import { judgeRepetition, type KeyedPlant, plantBatches } from '../plant-batches';
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
import { assertReadable, assertSameStore, migrate, type Schema } from './postgres.migrations';
import { digestOf, findKeyed, findPlant, insertPlants, readPage } from './postgres.statements';
import { AbandonedError, StatementWatch, withTimeout } from './statement-watch';

/** Milliseconds that bringing the schema up to date may take, locks included. */
const MIGRATION_TIMEOUT = 30_000;

/** Milliseconds that a check of the hosts may take, while a statement is late. */
const CHECK_TIMEOUT = 5000;

/** Milliseconds to check that a new session is in the store in use. */
const VERIFY_TIMEOUT = 2000;

/** How often a batch is tried that other transactions cause to be rolled back. */
const MAX_ATTEMPTS = 10;

/** Whether a plant was inserted, or why it was not or may not have been. */
type RowOutcome = boolean | PlantStoreError;

/** The outcome of an insertion, or the error when it failed or its outcome is unknown. */
type Outcome = Insertion | PlantStoreError;

/** By their ids. */
type StoredPlants = ReadonlyMap<bigint, KeyedPlant>;

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
  private readonly statements: StatementWatch;

  /** The store in use, once there is one. */
  private store: Schema | undefined;
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
    this.statements = new StatementWatch({
      hosts: this.hosts,
      checkHosts: (isOverdue) => this.checkHosts(isOverdue),
      onSilence: () => {
        const fault = 'the host has stopped answering while a statement waits for it.';
        this.breaker.open(new Error(`${this.hosts.name}: ${fault}`));
      },
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
    return this.submit(this.store?.hasKeys ? { id, name, tag, key: digestOf(key) } : plant);
  }

  find(id: bigint): Promise<Plant | undefined> {
    return this.read((client) => findPlant(client, id));
  }

  page(after: bigint | undefined, limit: number): Promise<Plant[]> {
    return this.read((client) => readPage(client, after, limit));
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

  /** Finds a host to use, whose store has to be the one that was in use before. */
  private async prepare(signal: AbortSignal, prefersOthers = false): Promise<void> {
    await this.hosts.selectWritable(prefersOthers);
    const client = await this.hosts.connect();
    await this.releaseAfter(client, withTimeout(this.useStore(client), MIGRATION_TIMEOUT, signal));
    this.statements.abandonLost();
  }

  /**
   * Called while a statement is late: its host may have stopped answering, and another one may have
   * taken over. A host that answers but does not commit may be a former primary that waits for its
   * standby.
   */
  private async checkHosts(isOverdue: boolean): Promise<void> {
    // While there is a fault, the breaker probes the hosts.
    if (this.breaker.fault) return;
    const { name, election } = this.hosts;
    try {
      await this.prepare(AbortSignal.timeout(CHECK_TIMEOUT), isOverdue);
      if (this.hosts.election === election) return;
      this.logger.warn(`${this.hosts.name}: in use now, because ${name} does not commit.`);
    } catch {
      // A late statement alone is not a fault. A host that stops answering becomes one soon.
    }
  }

  /** Creates and migrates the first store that is found. Later it has to be the same one. */
  private async useStore(client: PoolClient): Promise<void> {
    const { store } = this;
    const schema = store ? await assertSameStore(client, store.identity) : await migrate(client);
    await assertReadable(client, schema);
    if (!schema.hasKeys && store?.hasKeys !== false) {
      this.logger.warn(
        `${this.hosts.name}: the Idempotency-Key header is ignored, because the table plants has no column idempotency_key of type bytea.`,
      );
    }
    this.store = { ...schema, identity: store ? store.identity : schema.identity };
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
      await withTimeout(assertSameStore(client, this.store?.identity), VERIFY_TIMEOUT);
    } catch (error) {
      client.release(true);
      throw toOperatorError(this.hosts.name, error);
    }
    this.verified.add(client);
  }

  private async read<T>(work: (client: ClientBase) => Promise<T>): Promise<T> {
    const client = await this.connect();
    try {
      return await this.releaseAfter(client, this.statements.answerTo(work(client)));
    } catch (cause) {
      throw new UnavailableError({ cause });
    }
  }

  /** Releases a session after work on it. A failure closes it, and is described for an operator. */
  private async releaseAfter<T>(client: PoolClient, work: Promise<T>): Promise<T> {
    try {
      const result = await work;
      client.release();
      return result;
    } catch (error) {
      client.release(true);
      throw toOperatorError(this.hosts.name, error);
    }
  }

  private async commit(batch: readonly KeyedPlant[]): Promise<Outcome[]> {
    const client = await this.connect();
    const rows = firstOfEachId(batch);
    const outcomes = await this.insertRows(client, rows);
    const tried = new Map(
      rows.map((plant, at) => [plant.id, { plant, outcome: outcomes[at] ?? false }]),
    );
    const repetitions = batch.filter(
      ({ id, key }) => key !== undefined && tried.get(id)?.outcome === false,
    );
    const stored = isLost(outcomes)
      ? new UnavailableError()
      : await this.findStored(client, repetitions);
    client.release(isLost(outcomes) || stored instanceof UnavailableError);
    return batch.map((plant) => compare(plant, tried.get(plant.id), stored));
  }

  /** Commits rows with different ids. A row that the database refuses fails alone. */
  private async insertRows(client: ClientBase, rows: readonly KeyedPlant[]): Promise<RowOutcome[]> {
    const all = (outcome: RowOutcome): RowOutcome[] => rows.map(() => outcome);
    const { election } = this.hosts;

    for (let attempt = 1; ; attempt++) {
      try {
        const inserted = await this.statements.answerTo(
          insertPlants(client, rows, this.usesPreparedStatement),
        );
        this.breaker.confirm();
        return rows.map(({ id }) => inserted.has(id));
      } catch (error) {
        if (!isServerError(error) || isAmbiguous(error) || !(await this.isAlive(client))) {
          return all(new OutcomeUnknownError({ cause: this.report(error, election, true) }));
        }
        if (attempt < MAX_ATTEMPTS && isPreparedStatementFault(error)) {
          this.usesPreparedStatement = false;
        } else if (attempt < MAX_ATTEMPTS && isRetryable(error)) {
          await setTimeout(Math.random() * 2 ** attempt);
        } else if (!isRowFault(error)) {
          return all(new UnavailableError({ cause: this.report(error, election) }));
        } else {
          const cause = toOperatorError(this.hosts.name, error);
          if (rows.length > 1) return this.insertHalves(client, rows, cause);
          return all(new PlantStoreError('internal', undefined, { cause }));
        }
      }
    }
  }

  private async insertHalves(
    client: ClientBase,
    rows: readonly KeyedPlant[],
    cause: Error,
  ): Promise<RowOutcome[]> {
    const middle = rows.length >> 1;
    const outcomes = await this.insertRows(client, rows.slice(0, middle));
    const others = rows.slice(middle);
    // If the session was lost meanwhile, the other half was never sent.
    const rest = isLost(outcomes)
      ? others.map(() => new UnavailableError({ cause }))
      : await this.insertRows(client, others);
    return [...outcomes, ...rest];
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

  /**
   * Finds plants that have the same ids and keys.
   *
   * It is a statement of its own, so that it sees those whose commit the insert has waited for.
   *
   * @returns them by id, or why they could not be found
   */
  private async findStored(
    client: ClientBase,
    plants: readonly KeyedPlant[],
  ): Promise<StoredPlants | UnavailableError> {
    if (plants.length === 0) return new Map();
    const { election } = this.hosts;
    try {
      return await this.statements.answerTo(findKeyed(client, plants));
    } catch (error) {
      return new UnavailableError({ cause: this.report(error, election) });
    }
  }

  /**
   * Takes the store out of use, if the error of a statement says something about the host in use.
   *
   * @param election the one in which the statement began; another host may be in use since then
   * @returns the error for an operator
   */
  private report(error: unknown, election: number, isSessionLost = !isServerError(error)): Error {
    const fault = toOperatorError(this.hosts.name, error);
    const isPast = error instanceof AbandonedError || election !== this.hosts.election;
    const saysNothing = !isSessionLost && isServerError(error) && isMomentary(error);
    if (!isPast && !saysNothing) this.breaker.open(fault, isSessionLost);
    return fault;
  }
}

/** Sorted, so that instances cannot deadlock. */
function firstOfEachId(batch: readonly KeyedPlant[]): KeyedPlant[] {
  // Of equal keys, a Map holds the last.
  const firsts = new Map(batch.toReversed().map((plant) => [plant.id, plant]));
  return [...firsts.values()].sort((one, other) => (one.id < other.id ? -1 : 1));
}

/** Whether the session was lost while it had a statement to answer. */
function isLost(outcomes: readonly RowOutcome[]): boolean {
  return outcomes.some((outcome) => outcome instanceof OutcomeUnknownError);
}

/**
 * What became of a plant.
 *
 * @param tried the first plant of the batch with its id, and what became of that
 * @param stored the plants stored before with the id and key of one of the batch
 */
function compare(
  plant: KeyedPlant,
  tried: { readonly plant: KeyedPlant; readonly outcome: RowOutcome } | undefined,
  stored: StoredPlants | UnavailableError,
): Outcome {
  const { plant: first, outcome = false } = tried ?? {};
  if (outcome === true) return plant === first ? 'created' : judgeRepetition(first, plant);
  if (outcome !== false) {
    // The next plant with this id was not tried.
    return plant === first ? outcome : new UnavailableError({ cause: outcome });
  }
  if (!(stored instanceof UnavailableError)) return judgeRepetition(stored.get(plant.id), plant);
  return plant.key === undefined ? 'taken' : stored;
}
