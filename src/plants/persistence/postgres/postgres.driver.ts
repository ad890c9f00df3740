import { setTimeout } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import type { ClientBase, ClientConfig } from 'pg';
import { errorCatalogue, PlantStoreError } from '../../errors/errors';
import { contentOf, type Plant } from '../../plant';
import type { InsertOutcome } from '../../plants.repository';
import { insertBatch, type StatementError } from '../insert-batch';
import type { KeyedPlant } from '../keyed-plant';
import type { PlantRange, StoreDriver } from '../store-driver';
import { type StoreHealth, UNDETECTED_FAILURE_DELAY_MS } from '../store-health';
import { classifyError, type ErrorClass, toOperatorError } from './postgres.errors';
import { PostgresSessions } from './postgres.sessions';
import { lacksTls } from './postgres.settings';
import { commitNothing, findKeyed, insertPlants, readPlants } from './postgres.statements';

const NO_TLS_WARNING =
  'The connection to PostgreSQL on another machine is not encrypted: add sslmode=verify-full to its URL, or sslmode=disable to accept that.';

/** The maximum number of attempts if other transactions cause the rollback of a batch. */
const MAX_BATCH_ATTEMPTS = 10;

/** The meaning of each class of errors for the rows of a batch. */
const REACHES: Readonly<Record<ErrorClass, StatementError['reach']>> = {
  retry: 'retry',
  unprepared: 'retry',
  row: 'row',
  rejected: 'batch',
  unusable: 'batch',
  unknown: 'session',
  connectionLost: 'session',
};

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
   * @param connection a connection URL, or settings of the driver, whose `connectionString` may be a URL.
   *   They are read again after each failure.
   * @throws StoreOpenError when the URL or the settings are invalid
   */
  constructor(
    connection: string | ClientConfig,
    private readonly health: StoreHealth,
  ) {
    this.sessions = new PostgresSessions(connection, (failure) => {
      health.fail(failure);
    });
    this.name = this.sessions.name;
    if (lacksTls(connection)) new Logger('PlantStore').warn(NO_TLS_WARNING);
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
      // Close the session: a new one gets the current settings of the role and the database.
      session.release(true);
      // A table may reject only the rows of a probe. Then a probe shows no more than that it responds in time.
      if (errorClass !== 'row' || this.rejectsAllRows) throw failure;
    }
  }

  close(): Promise<void> {
    return this.sessions.close();
  }

  async commit(plants: readonly KeyedPlant[]): Promise<(InsertOutcome | PlantStoreError)[]> {
    const session = await this.sessions.connect();
    // A table that the operator prepared may have no column for keys.
    const batch = this.sessions.schema?.hasKeys ? plants : plants.map(withoutKey);
    let isBroken = false;
    const outcomes = await insertBatch(batch, {
      insert: (rows) => insertPlants(session, rows, this.usesPreparedStatement),
      findKeyed: (rows) => findKeyed(session, rows),
      handle: async (error, attempt) => {
        const { errorClass, failure } = await this.report(error, session);
        if (errorClass === 'unprepared') this.usesPreparedStatement = false;
        const reach = REACHES[errorClass];
        if (reach === 'retry') {
          if (attempt >= MAX_BATCH_ATTEMPTS) return { reach: 'batch', cause: failure };
          await setTimeout(Math.random() * 2 ** attempt);
        }
        isBroken ||= reach === 'session';
        return { reach, cause: failure };
      },
    });
    session.release(isBroken);
    const errors = outcomes.filter((outcome) => outcome instanceof PlantStoreError);
    this.rejectsAllRows = errors.length === outcomes.length && errors.some(isRowRejection);
    return outcomes;
  }

  /** Classifies the error of a statement, and reports it to the health if the store has failed. */
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
}

function withoutKey(plant: Plant): KeyedPlant {
  return { id: plant.id, ...contentOf(plant) };
}

function isRowRejection({ error }: PlantStoreError): boolean {
  return error === errorCatalogue.internal.error;
}
