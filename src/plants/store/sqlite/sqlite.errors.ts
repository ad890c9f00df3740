import { accessSync, constants, existsSync } from 'node:fs';
import { dirname } from 'node:path';

/** SQLite's primary result codes, https://sqlite.org/rescode.html. */
const SQLITE_BUSY = 5;
const SQLITE_READONLY = 8;
const SQLITE_CORRUPT = 11;
const SQLITE_FULL = 13;
const SQLITE_CANTOPEN = 14;
const SQLITE_CONSTRAINT = 19;

const DAMAGE_ADVICE =
  'run `plant-store check --deep`; to repair it, stop the service and run `plant-store restore BACKUP`';

/** Whether the database rejected a single row: a constraint, or a trigger that raised an error. */
export function isRowRejection(error: unknown): boolean {
  return resultCodeOf(error) === SQLITE_CONSTRAINT;
}

export function isBusy(error: unknown): boolean {
  return resultCodeOf(error) === SQLITE_BUSY;
}

export function isDiskFull(error: unknown): boolean {
  return resultCodeOf(error) === SQLITE_FULL;
}

/** Whether SQLite found damage in a file that it recognizes as a database. */
export function isDamage(error: unknown): boolean {
  return resultCodeOf(error) === SQLITE_CORRUPT;
}

/** Formats an error in one line, with advice or the operating system's reason. */
export function describeError(error: unknown, path: string): string {
  const { message } = error as Error;
  const code = resultCodeOf(error);
  if (isDamage(error)) return `${message}: ${DAMAGE_ADVICE}`;
  if (code !== SQLITE_CANTOPEN && code !== SQLITE_READONLY) return message;
  try {
    accessSync(existsSync(path) ? path : dirname(path), constants.R_OK | constants.W_OK);
    return message;
  } catch (reason) {
    return (reason as Error).message;
  }
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
