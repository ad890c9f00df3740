import { accessSync, constants, existsSync } from 'node:fs';
import { dirname } from 'node:path';

/** SQLite's primary result codes, https://sqlite.org/rescode.html. */
export const SQLITE_ERROR = 1;
export const SQLITE_BUSY = 5;
export const SQLITE_READONLY = 8;
export const SQLITE_CORRUPT = 11;
export const SQLITE_FULL = 13;
export const SQLITE_CANTOPEN = 14;
export const SQLITE_NOTADB = 26;

export const RESTORE_ADVICE = 'stop the service and run `plant-store restore BACKUP`';
const DAMAGE_ADVICE = `run \`plant-store check --deep\`; to repair it, ${RESTORE_ADVICE}`;

/** The database file became shorter. Its write-ahead log would damage what is left of it. */
export class CutFileError extends Error {
  constructor() {
    super(
      `the database file was truncated, and its write-ahead log belongs to what it was: ${RESTORE_ADVICE}`,
    );
  }
}

/** The primary result code; undefined if the error is not SQLite's. */
export function resultCodeOf(error: unknown): number | undefined {
  const code = (error as { errcode?: number }).errcode;
  // The lower byte of an extended result code is the primary one.
  return code === undefined ? undefined : code & 0xff;
}

/** Whether a statement failed because another connection holds a lock. */
export function isBusy(error: unknown): boolean {
  return resultCodeOf(error) === SQLITE_BUSY;
}

/** An error in one line: with advice, or with why the operating system refused the file. */
export function describeError(error: unknown, path: string): string {
  const { message } = error as Error;
  const code = resultCodeOf(error);
  if (code === SQLITE_CORRUPT) return `${message}: ${DAMAGE_ADVICE}`;
  if (code !== SQLITE_CANTOPEN && code !== SQLITE_READONLY) return message;
  try {
    accessSync(existsSync(path) ? path : dirname(path), constants.R_OK | constants.W_OK);
    return message;
  } catch (refusal) {
    return (refusal as Error).message;
  }
}
