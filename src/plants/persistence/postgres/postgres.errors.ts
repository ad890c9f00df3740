import { type ClientBase, DatabaseError } from 'pg';
import { TABLE } from './postgres.schema';

/*
 * Beyond SQLSTATE this file depends on four texts: "timeout exceeded when trying to connect" and "Query
 * read timeout" of pg 8.16 to 8.23, which gives these errors no code; the routine "ExecWithCheckOptions"
 * and the notice about a cancelled wait of PostgreSQL 14 to 18 and Citus 13.2.
 */

/**
 * What an error says about the plants of its statement:
 *
 * - `row`: nothing was stored; one row is the cause, and fails alone
 * - `again`: nothing was stored; another attempt may succeed
 * - `unprepared`: nothing was stored; a proxy has put us on another session, so do not prepare
 * - `refused`: nothing was stored; that says nothing about the next statement
 * - `unusable`: nothing was stored; the store is not used until it works again
 * - `unknown`: the server itself does not know whether the transaction was committed
 * - `lost`: the session ended before the answer, so the transaction may be committed
 */
export type Verdict = 'row' | 'again' | 'unprepared' | 'refused' | 'unusable' | 'unknown' | 'lost';

/**
 * SQLSTATE codes and classes (PostgreSQL documentation, appendix A), their meaning, and the verdict, if
 * the session has survived. The first row that fits a code counts; any other code is `unusable`.
 */
const VERDICTS: readonly (readonly [codes: string, meaning: string, verdict: Verdict])[] = [
  ['08', 'a connection to another server failed: a worker of Citus, a foreign one', 'unknown'],
  ['XX 40003', 'internal error; statement completion unknown', 'unknown'],
  ['40001 40P01', 'serialization failure; deadlock', 'again'],
  ['26000 42P05', 'the prepared statement does not exist, or does already', 'unprepared'],
  ['40', 'another rollback', 'refused'],
  ['55', 'a lock was not available in time, or the object is in use', 'refused'],
  ['57', 'cancelled by an operator or a time limit', 'refused'],
  ['72', 'snapshot too old', 'refused'],
  ['21 22', 'invalid data', 'row'],
  ['23 44', 'a constraint, a missing partition, or the check option of a view', 'row'],
  ['54', 'the row is too large', 'row'],
  ['09 38 39 45 P0', 'a trigger raised an error', 'row'],
  // Classes that the SQL standard leaves to applications, less those of PostgreSQL and YugabyteDB.
  ['6 7 8 9 I J K L M N O Q R S T U V W Z', 'a trigger raised an error of its own', 'row'],
];

/** Judges the error of a statement by {@link VERDICTS}, if the session has survived. */
export async function judge(error: unknown, session: ClientBase): Promise<Verdict> {
  if (!(error instanceof DatabaseError)) return 'lost';
  try {
    // If it answers, the server has rolled back. An error that ends the session may follow a commit.
    await session.query('SELECT 1');
  } catch {
    return 'lost';
  }
  const { code = '', routine } = error;
  // A missing privilege has the same code as a row-level policy.
  if (code === '42501') return routine === 'ExecWithCheckOptions' ? 'row' : 'unusable';
  const row = VERDICTS.find(([codes]) => codes.split(' ').some((start) => code.startsWith(start)));
  return row?.[2] ?? 'unusable';
}

/** Whether all our sessions were in use, which says nothing about the server. */
export function isPoolExhausted(error: unknown): boolean {
  return (error as Error).message === 'timeout exceeded when trying to connect';
}

/**
 * Whether a notice says that the wait for a synchronous standby was cancelled: the server reports success
 * then. What a worker of Citus says comes from another routine, and only its text tells what it is.
 */
export function isCancelledWait({ routine, message = '' }: Partial<DatabaseError>): boolean {
  return routine === 'SyncRepWaitForLSN' || message.includes('wait for synchronous replication');
}

/** What an operator can do, by SQLSTATE or Node's code. */
const ADVICE: Partial<Record<string, string>> = {
  '28000': "Check the user and sslmode, and the server's pg_hba.conf.",
  '28P01': 'Check the user and the password.',
  '3D000': 'Create the database, or correct its name.',
  '42501':
    'Grant the user SELECT and INSERT on plants. If the service is to create that table, grant CREATE on the schema too.',
  '42703': `The table plants must have the columns that these statements make: ${TABLE}`,
  '42P01': `Run: ${TABLE}`,
  '53100': 'Free disk space on the database server.',
  '53300': 'Raise max_connections of the server, or run fewer instances.',
  '55P03':
    'A long transaction, such as a dump, has a lock on the table. Wait until it ends, or cancel it.',
  ECONNREFUSED: 'Check that the server runs, and the host and the port.',
  ENOTFOUND: 'Check the name of the host.',
};
/** For the errors of OpenSSL and of Node's verification, which name no file. */
const FILES = 'Check the files that sslrootcert, sslcert and sslkey name.';

/** An error for an operator, in one line and without secrets, with advice where there is some. */
export function toOperatorError(where: string, error: unknown): Error {
  // Node tries each address of a host name and reports all failures together, without a message.
  const cause: unknown = error instanceof AggregateError ? error.errors[0] : error;
  const { code, message } = cause as { code?: string; message: string };
  const line = message
    .trim()
    .replaceAll(/\s*\n\s*/g, ' ')
    .replace(/^Query read timeout$/, 'the server did not answer a statement within the time limit');
  const reason = line === '' || code === undefined ? line || code : `${line} (${code})`;
  const advice = /^ERR_(OSSL|SSL)|CERT/.test(code ?? '') ? FILES : ADVICE[code ?? ''];
  return new Error(`${where}: ${reason}.${advice === undefined ? '' : ` ${advice}`}`, { cause });
}
