/** The primary result code, https://sqlite.org/rescode.html. */
const SQLITE_BUSY = 5;

/** Whether a statement failed because another connection holds a lock. */
export function isBusy(error: unknown): boolean {
  // The lower byte of an extended result code is the primary one.
  return ((error as { errcode?: number }).errcode ?? 0) % 256 === SQLITE_BUSY;
}
