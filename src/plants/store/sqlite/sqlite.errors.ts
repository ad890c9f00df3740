/**
 * Depends on undocumented behavior of Node.js (tested: 24.18.1, 26.5.1, 26.10.0): the property `errcode` of an error of
 * `node:sqlite` is SQLite's extended result code. Its documented `code` is the same for all of them.
 */
import { dirname } from 'node:path';
import { walPathOf } from './sqlite.files';
import { findFileReason, tryToWriteIn } from './sqlite.reasons';

/** SQLite's primary result codes, https://sqlite.org/rescode.html. */
const SQLITE_BUSY = 5;
const SQLITE_READONLY = 8;
const SQLITE_IOERR = 10;
const SQLITE_CORRUPT = 11;
const SQLITE_FULL = 13;
const SQLITE_CANTOPEN = 14;
const SQLITE_CONSTRAINT = 19;

/** Extended result codes. */
const SQLITE_IOERR_WRITE = 778;
const SQLITE_IOERR_FSYNC = 1034;
const SQLITE_IOERR_TRUNCATE = 1546;
const WRITE_ERRORS = [SQLITE_IOERR_WRITE, SQLITE_IOERR_FSYNC, SQLITE_IOERR_TRUNCATE];

/** Errors with a reason that only the operating system knows. */
const SYSTEM_ERRORS = [SQLITE_READONLY, SQLITE_IOERR, SQLITE_FULL, SQLITE_CANTOPEN];

const DAMAGE_ADVICE =
  'run `plant-store check --deep`; to repair it, stop the service and run `plant-store restore BACKUP`';

/** Whether the database rejected a single row: a constraint, or a trigger that raised an error. */
export function isRowRejection(error: unknown): boolean {
  return resultCodeOf(error) === SQLITE_CONSTRAINT;
}

/** Whether another session has kept a lock for longer than the busy timeout. */
export function isBusy(error: unknown): boolean {
  return resultCodeOf(error) === SQLITE_BUSY;
}

/** Whether the file system, a quota or a limit of SQLite has no space left. */
export function isDiskFull(error: unknown): boolean {
  return resultCodeOf(error) === SQLITE_FULL;
}

/** Whether SQLite found damage in a file that it recognizes as a database. */
export function isDamage(error: unknown): boolean {
  return resultCodeOf(error) === SQLITE_CORRUPT;
}

/** Whether SQLite could not write a file, while it copied a database to another one. */
export function isWriteError(error: unknown): boolean {
  const code = extendedCodeOf(error);
  return isDiskFull(error) || (code !== undefined && WRITE_ERRORS.includes(code));
}

/** Formats an error in one line, with advice or the operating system's reason. */
export function describeError(error: unknown, path: string): string {
  return explain(error, () => findFileReason(path));
}

/** Does the same if the store could not be opened. Writes a file next to it, if that is needed to find the reason. */
export function describeOpeningError(error: unknown, path: string): string {
  return explain(error, () => findFileReason(path) ?? tryToWriteIn(dirname(walPathOf(path))));
}

/** @param findReason called only for errors whose reason the operating system knows */
function explain(error: unknown, findReason: () => string | undefined): string {
  const { message } = error as Error;
  if (isDamage(error)) return `${message}: ${DAMAGE_ADVICE}`;
  if (!SYSTEM_ERRORS.includes(resultCodeOf(error) ?? 0)) return message;
  const reason = findReason();
  return reason === undefined ? message : `${message} (${reason})`;
}

/** Returns SQLite's extended result code; undefined if the error is not SQLite's. */
export function extendedCodeOf(error: unknown): number | undefined {
  return (error as { errcode?: number }).errcode;
}

/** Returns the primary result code, which is the lower byte of the extended one. */
function resultCodeOf(error: unknown): number | undefined {
  const code = extendedCodeOf(error);
  return code === undefined ? undefined : code & 0xff;
}
