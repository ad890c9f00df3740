/**
 * Undocumented behavior of PostgreSQL (tested with 18): which of its routines emits a warning. The text of a warning is
 * translated, and its code is mostly 01000, so nothing else tells warnings apart. A warning of an unknown routine
 * counts. The names of the routines that number transactions are those of its source, `varsup.c` and `multixact.c`: no
 * test brings a server so far that they warn.
 */

/** Routines whose warnings do not concern the commit. */
const OTHER_ROUTINES: readonly (string | undefined)[] = [
  // The server must be vacuumed soon, before it has used all numbers of transactions. It warns in each transaction.
  'GetNewTransactionId',
  'GetNewMultiXactId',
  // A trigger of the operator, in PL/pgSQL.
  'exec_stmt_raise',
];

/**
 * Whether a notice is a warning (SQLSTATE class 01) that may say that a commit is not complete: PostgreSQL warns so if
 * the wait for a synchronous standby was canceled, and Citus if a shard was not committed.
 */
export function isAboutCommit(notice: Record<'code' | 'routine', string | undefined>): boolean {
  return notice.code?.startsWith('01') === true && !OTHER_ROUTINES.includes(notice.routine);
}
