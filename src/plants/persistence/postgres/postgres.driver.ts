import { setTimeout } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import type { ClientBase, ClientConfig } from 'pg';
import {
  errorCatalogue,
  OutcomeUnknownError,
  PlantStoreError,
  UnavailableError,
} from '../../errors/errors';
import { contentOf, type Plant } from '../../plant';
import type { Insertion } from '../../plants.repository';
import { type KeyedPlant, repetitionOutcome } from '../keyed-plant';
import type { PlantRange, StoreDriver } from '../store-driver';
import { type StoreHealth, UNDETECTED_FAILURE_DELAY_MS } from '../store-health';
import { classifyError, type ErrorClass, toOperatorError } from './postgres.errors';
import { PostgresSessions } from './postgres.sessions';
import { lacksTls } from './postgres.settings';
import { commitNothing, findKeyed, insertPlants, readPlants } from './postgres.statements';

const NO_TLS =
  'The connection to PostgreSQL on another machine is not encrypted: add sslmode=verify-full to its URL, or sslmode=disable to accept that.';

/** How often a batch is tried if other transactions cause its rollback. */
const MAX_BATCH_ATTEMPTS = 10;

/** By id, what became of the row with it. A row that was never sent is missing. */
type RowOutcomes = Map<bigint, 'created' | 'taken' | PlantStoreError>;

/**
 * PostgreSQL, or a database that speaks its protocol. Each batch is one statement, which is one
 * transaction.
 */
export class PostgresDriver implements StoreDriver {
  readonly name: string;
  readonly startTimeout = 5000;
  private readonly sessions: PostgresSessions;
  /** Prepared statements save the server 25% of its CPU time. Some proxies do not support them. */
  private usesPreparedStatement = true;
  /** Whether the database rejected each row of the latest batch. */
  private rejectsAllRows = false;

  /**
   * @param where a connection URL, or settings of the driver, whose `connectionString` may be one. They
   *   are read again after each fault.
   * @throws StoreOpenError when the URL or the settings are invalid
   */
  constructor(
    where: string | ClientConfig,
    private readonly health: StoreHealth,
  ) {
    this.sessions = new PostgresSessions(where, (failure) => {
      health.fail(failure);
    });
    this.name = this.sessions.name;
    if (lacksTls(where)) new Logger('PlantStore').warn(NO_TLS);
  }

  open(signal: AbortSignal): Promise<void> {
    return this.sessions.open(signal);
  }

  read(range: PlantRange): Promise<Plant[]> {
    return this.sessions.run((session) => readPlants(session, range));
  }

  async probe(): Promise<void> {
    const session = await this.sessions.connect();
    try {
      await commitNothing(session, true);
      session.release();
    } catch (error) {
      const { errorClass, failure } = await this.report(error, session);
      // A new session has the settings that the role and the database have now.
      session.release(true);
      // A table may reject the rows of a probe alone. Then its response in time is all that a probe shows.
      if (errorClass !== 'row' || this.rejectsAllRows) throw failure;
    }
  }

  close(): Promise<void> {
    return this.sessions.close();
  }

  /** Inserts the first plant of each id, then looks up plants whose id already exists and compares them. */
  async commit(plants: readonly KeyedPlant[]): Promise<(Insertion | PlantStoreError)[]> {
    const session = await this.sessions.connect();
    // A table of the operator may have no column for keys.
    const batch = this.sessions.schema?.hasKeys ? plants : plants.map(withoutKey);
    // A Map keeps the last of equal keys.
    const firsts = new Map(batch.toReversed().map((plant) => [plant.id, plant]));
    // Sorted, so that instances cannot deadlock.
    const rows = [...firsts.values()].sort((one, other) => (one.id < other.id ? -1 : 1));
    const outcomes: RowOutcomes = new Map();
    const isUsable = await this.insertRows(session, rows, outcomes);
    this.rejectsAllRows = [...outcomes.values()].every(isRowRejection);
    const taken = batch.filter(({ id, keyDigest }) => keyDigest && outcomes.get(id) === 'taken');
    const stored = isUsable ? await this.findStored(session, taken) : new UnavailableError();
    session.release(stored instanceof UnavailableError);

    return batch.map((plant) => {
      const first = firsts.get(plant.id);
      const outcome = outcomes.get(plant.id) ?? new UnavailableError();
      if (plant === first && outcome !== 'taken') return outcome;
      if (outcome instanceof PlantStoreError) return new UnavailableError({ cause: outcome });
      if (outcome === 'created') return repetitionOutcome(first, plant);
      if (plant.keyDigest === undefined) return 'taken';
      return stored instanceof UnavailableError
        ? stored
        : repetitionOutcome(stored.get(plant.id), plant);
    });
  }

  /**
   * Commits rows with different ids. A row that the database rejects fails alone.
   *
   * @returns whether the session is still usable; if not, nothing more is sent
   */
  private async insertRows(
    session: ClientBase,
    rows: readonly KeyedPlant[],
    outcomes: RowOutcomes,
    attempt = 1,
  ): Promise<boolean> {
    try {
      const inserted = await insertPlants(session, rows, this.usesPreparedStatement);
      for (const { id } of rows) outcomes.set(id, inserted.has(id) ? 'created' : 'taken');
      return true;
    } catch (error) {
      const { errorClass, failure } = await this.report(error, session);
      if (errorClass === 'unprepared') this.usesPreparedStatement = false;
      if (['retry', 'unprepared'].includes(errorClass) && attempt < MAX_BATCH_ATTEMPTS) {
        await setTimeout(Math.random() * 2 ** attempt);
        return this.insertRows(session, rows, outcomes, attempt + 1);
      }
      if (errorClass === 'row' && rows.length > 1) {
        const middle = Math.floor(rows.length / 2);
        if (!(await this.insertRows(session, rows.slice(0, middle), outcomes))) return false;
        return this.insertRows(session, rows.slice(middle), outcomes);
      }
      for (const { id } of rows) outcomes.set(id, toPlantStoreError(errorClass, failure));
      return errorClass !== 'unknown' && errorClass !== 'connectionLost';
    }
  }

  /** Classifies the error of a statement, and reports it if the store has failed. */
  private async report(
    error: unknown,
    session: ClientBase,
  ): Promise<{ errorClass: ErrorClass; failure: Error }> {
    const failure = toOperatorError(this.name, error);
    const errorClass = await classifyError(error, session);
    if (errorClass === 'connectionLost') this.health.fail(failure);
    // Reconnecting detects neither a full disk nor the loss of another node.
    if (errorClass === 'unknown' || errorClass === 'unusable') {
      this.health.fail(failure, { delay: UNDETECTED_FAILURE_DELAY_MS });
    }
    return { errorClass, failure };
  }

  /** A separate statement, so that it sees plants committed by transactions that the insert had to wait for. */
  private async findStored(
    session: ClientBase,
    plants: readonly KeyedPlant[],
  ): Promise<ReadonlyMap<bigint, KeyedPlant> | UnavailableError> {
    if (plants.length === 0) return new Map();
    try {
      return await findKeyed(session, plants);
    } catch (error) {
      return new UnavailableError({ cause: (await this.report(error, session)).failure });
    }
  }
}

function withoutKey(plant: Plant): KeyedPlant {
  return { id: plant.id, ...contentOf(plant) };
}

function toPlantStoreError(errorClass: ErrorClass, cause: Error): PlantStoreError {
  if (errorClass === 'unknown' || errorClass === 'connectionLost') {
    return new OutcomeUnknownError({ cause });
  }
  if (errorClass === 'row') return new PlantStoreError('internal', undefined, { cause });
  return new UnavailableError({ cause });
}

function isRowRejection(outcome: unknown): boolean {
  return outcome instanceof PlantStoreError && outcome.error === errorCatalogue.internal.error;
}
