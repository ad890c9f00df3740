/**
 * The thread that owns the session, because a sync blocks its thread. It replies to requests in order.
 *
 * It depends on undocumented behavior of SQLite: the last session that closes neither checkpoints nor deletes a
 * write-ahead log if the database file was moved, replaced or deleted. Tested with SQLite 3.53.1, 3.53.3 and 3.53.4.
 * `sqlite-plants.repository.spec.ts` fails if this behavior changes.
 */
import { parentPort, workerData } from 'node:worker_threads';
import type { InsertOutcome } from '../../plants.repository';
import type { KeyedPlant } from '../idempotency';
import type { SqliteFailure, SqliteReply, SqliteRequest } from './sqlite.driver';
import {
  describeError,
  describeOpeningError,
  extendedCodeOf,
  isBusy,
  isDiskFull,
} from './sqlite.errors';
import { insertPlant, readPlants } from './sqlite.statements';
import { assertSameFiles, assertWritable, openSession, type Session } from './sqlite.session';
import { checkpoint, closeWithoutCheckpoint, isWalLarge } from './sqlite.wal';

const path = workerData as string;
/** After how many plants the size of the WAL is measured: doing it for every commit would take 4% of the CPU time. */
const PLANTS_PER_MEASUREMENT = 250;

/** The outcome of most failures. The next request may succeed. */
const NOT_STORED = { kind: 'notStored', reach: 'store' } as const;
/** The outcome of a failure after which the file must not be used again. */
const FINAL = { kind: 'unknown', reach: 'process' } as const;

/** Whether a COMMIT has begun and its result is not known. */
let isCommitting = false;
let plantsSinceMeasurement = 0;

try {
  const session = openSession(path);
  send({ value: session.foundVersion });
  parentPort?.on('message', (request: SqliteRequest) => {
    send(reply(session, request));
    if (request.kind === 'close') parentPort?.close();
    else if (plantsSinceMeasurement >= PLANTS_PER_MEASUREMENT) copyLargeWal(session);
  });
} catch (error) {
  // Without a listener, the thread ends.
  const reason = describeOpeningError(error, path);
  send({ ...NOT_STORED, reason, code: extendedCodeOf(error) });
}

function send(message: SqliteReply): void {
  parentPort?.postMessage(message);
}

function reply(session: Session, request: SqliteRequest): SqliteReply {
  try {
    return { value: perform(session, request) };
  } catch (error) {
    // A full disk or a lock of another process has kept the COMMIT from being written. After any other failure of a
    // COMMIT, such as a failed sync, its outcome is unclear.
    const isFinal =
      request.kind === 'close' || (isCommitting && !isDiskFull(error) && !isBusy(error));
    isCommitting = false;
    if (isFinal) closeWithoutCheckpoint(session.database, path);
    else if (session.database.isTransaction) session.database.exec('ROLLBACK');
    const reason = describeError(error, path);
    return { ...(isFinal ? FINAL : NOT_STORED), reason, code: extendedCodeOf(error) };
  }
}

/** Runs after the reply, so that no plant waits for it. If it fails, the thread ends, which is final. */
function copyLargeWal(session: Session): void {
  plantsSinceMeasurement = 0;
  try {
    if (isWalLarge(session.database)) checkpoint(session.database);
  } catch (error) {
    closeWithoutCheckpoint(session.database, path);
    throw new Error(describeError(error, path), { cause: error });
  }
}

function perform(session: Session, request: SqliteRequest): unknown {
  switch (request.kind) {
    case 'commit':
      return commitBatch(session, request.batch);
    case 'read':
      return readPlants(session, request.range);
    case 'probe':
      assertSameFiles(session);
      assertWritable(session.database);
      return undefined;
    case 'close':
      checkpoint(session.database);
      session.database.close();
      return undefined;
  }
}

function commitBatch(
  session: Session,
  batch: readonly KeyedPlant[],
): (InsertOutcome | SqliteFailure)[] {
  const { database } = session;
  database.exec('BEGIN IMMEDIATE');
  const outcomes = batch.map((plant) => insertPlant(session, plant));
  assertSameFiles(session);
  isCommitting = true;
  database.exec('COMMIT');
  isCommitting = false;
  plantsSinceMeasurement += batch.length;
  return outcomes;
}
