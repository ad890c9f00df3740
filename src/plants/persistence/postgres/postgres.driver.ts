import { setTimeout } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import type { ClientBase, ClientConfig } from 'pg';
import { OutcomeUnknownError, PlantStoreError, UnavailableError } from '../../errors/errors';
import { contentOf, type Plant } from '../../plant';
import type { Insertion } from '../../plants.repository';
import { type KeyedPlant, repetitionOutcome } from '../keyed-plant';
import type { PlantRange, StoreDriver } from '../store-driver';
import { PAUSE, type StoreHealth } from '../store-health';
import { judge, toOperatorError, type Verdict } from './postgres.errors';
import { PostgresSessions } from './postgres.sessions';
import { lacksTls } from './postgres.settings';
import { commitEmpty, findKeyed, insertPlants, readPlants } from './postgres.statements';

const NO_TLS =
  'The connection to PostgreSQL on another machine is not encrypted: add sslmode=verify-full to its URL, or sslmode=disable to say that this is meant.';

/** How often a batch is tried if other transactions cause its rollback. */
const MAX_ATTEMPTS = 10;

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
  /** Prepared statements save the server a quarter of its time. Some proxies do not support them. */
  private usesPreparedStatement = true;

  /**
   * @param where a connection URL, or settings of the driver, whose `connectionString` may be one. They
   *   are read again after each fault.
   * @throws StoreOpenError when the URL or the settings are invalid
   */
  constructor(
    where: string | ClientConfig,
    private readonly health: StoreHealth,
  ) {
    this.sessions = new PostgresSessions(where, (fault) => {
      health.fail(fault);
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

  probe(): Promise<void> {
    return this.sessions.run(commitEmpty);
  }

  close(): Promise<void> {
    return this.sessions.close();
  }

  /** Inserts the first plant of each id, finds the repetitions of stored ones, and compares. */
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
   * Commits rows with different ids. A row that the database refuses fails alone.
   *
   * @returns whether the session can be used further; after its loss nothing is sent
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
      const { verdict, fault } = await this.report(error, session);
      if (verdict === 'unprepared') this.usesPreparedStatement = false;
      if (['again', 'unprepared'].includes(verdict) && attempt < MAX_ATTEMPTS) {
        await setTimeout(Math.random() * 2 ** attempt);
        return this.insertRows(session, rows, outcomes, attempt + 1);
      }
      if (verdict === 'row' && rows.length > 1) {
        const middle = Math.floor(rows.length / 2);
        if (!(await this.insertRows(session, rows.slice(0, middle), outcomes))) return false;
        return this.insertRows(session, rows.slice(middle), outcomes);
      }
      for (const { id } of rows) outcomes.set(id, toPlantStoreError(verdict, fault));
      return verdict !== 'unknown' && verdict !== 'lost';
    }
  }

  /** Judges the error of a statement, which may take the store out of use. */
  private async report(
    error: unknown,
    session: ClientBase,
  ): Promise<{ verdict: Verdict; fault: Error }> {
    const fault = toOperatorError(this.name, error);
    const verdict = await judge(error, session);
    if (verdict === 'lost') this.health.fail(fault);
    // The server may work, and only miss another server.
    if (verdict === 'unknown') this.health.pause(fault);
    // An attempt does not detect a full disk.
    if (verdict === 'unusable') this.health.fail(fault, { isProvable: false, delay: PAUSE });
    return { verdict, fault };
  }

  /** A statement of its own, so that it sees plants whose commit the insert has waited for. */
  private async findStored(
    session: ClientBase,
    plants: readonly KeyedPlant[],
  ): Promise<ReadonlyMap<bigint, KeyedPlant> | UnavailableError> {
    if (plants.length === 0) return new Map();
    try {
      return await findKeyed(session, plants);
    } catch (error) {
      return new UnavailableError({ cause: (await this.report(error, session)).fault });
    }
  }
}

function withoutKey(plant: Plant): KeyedPlant {
  return { id: plant.id, ...contentOf(plant) };
}

function toPlantStoreError(verdict: Verdict, cause: Error): PlantStoreError {
  if (verdict === 'unknown' || verdict === 'lost') return new OutcomeUnknownError({ cause });
  if (verdict === 'row') return new PlantStoreError('internal', undefined, { cause });
  return new UnavailableError({ cause });
}
