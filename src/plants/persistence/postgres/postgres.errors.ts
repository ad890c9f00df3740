import { type ClientBase, DatabaseError } from 'pg';
import { CREATE_TABLE_SQL } from './postgres.schema';

/*
 * Besides SQLSTATE codes, this file depends on four strings:
 *
 * - "timeout exceeded when trying to connect" and "Query read timeout" of pg 8.16 to 8.23, which gives these
 *   errors no code
 * - the routine "ExecWithCheckOptions" and the notice about a cancelled wait of PostgreSQL 14 to 18 and
 *   Citus 13.2
 */

/**
 * The meaning of an error for the plants of its statement:
 *
 * - `row`: nothing was stored; one row is the cause, and only that row is rejected
 * - `retry`: nothing was stored; another attempt may succeed
 * - `unprepared`: nothing was stored; a proxy moved us to another session, so stop using prepared statements
 * - `rejected`: nothing was stored; the next statement may succeed
 * - `unusable`: nothing was stored; the store has failed and is reopened
 * - `unknown`: the server itself does not know whether the transaction was committed
 * - `connectionLost`: the session ended before the response, so the transaction may be committed
 */
export type ErrorClass =
  'row' | 'retry' | 'unprepared' | 'rejected' | 'unusable' | 'unknown' | 'connectionLost';

/**
 * SQLSTATE codes and classes (PostgreSQL documentation, appendix A), their meaning, and the error class if
 * the session has survived. The first row that matches a code is used. Any other code is `unusable`.
 */
const ERROR_CLASSES: readonly (readonly [codes: string, meaning: string, is: ErrorClass])[] = [
  ['08', 'a connection to another server failed: a worker of Citus', 'unknown'],
  ['XX 40003', 'internal error; statement completion unknown', 'unknown'],
  ['40001 40P01', 'serialization failure; deadlock', 'retry'],
  ['26000 42P05', 'the prepared statement does not exist, or does already', 'unprepared'],
  ['40', 'another rollback', 'rejected'],
  ['55', 'a lock was not available in time, or the object is in use', 'rejected'],
  ['57', 'cancelled by an operator or a time limit', 'rejected'],
  ['72', 'snapshot too old', 'rejected'],
  ['21 22', 'invalid data', 'row'],
  ['23 44', 'a constraint, a missing partition, or the check option of a view', 'row'],
  ['54', 'the row is too large', 'row'],
  ['09 38 39 45 P0', 'a trigger raised an error', 'row'],
  // Classes that the SQL standard leaves to applications, except those of PostgreSQL and YugabyteDB.
  ['6 7 8 9 I J K L M N O Q R S T U V W Z', 'a trigger raised an error of its own', 'row'],
];

/** Classifies the error of a statement. Runs another statement to check whether the session has survived. */
export async function classifyError(error: unknown, session: ClientBase): Promise<ErrorClass> {
  if (!(error instanceof DatabaseError)) return 'connectionLost';
  try {
    // If this succeeds, the server has rolled the transaction back. An error that ends the session may
    // follow a commit.
    await session.query('SELECT 1');
  } catch {
    return 'connectionLost';
  }
  const { code = '', routine } = error;
  // A missing privilege and a row-level security policy have the same code.
  if (code === '42501') return routine === 'ExecWithCheckOptions' ? 'row' : 'unusable';
  const row = ERROR_CLASSES.find(([codes]) =>
    codes.split(' ').some((start) => code.startsWith(start)),
  );
  return row?.[2] ?? 'unusable';
}

/** Whether the pool had no free session. That says nothing about the server. */
export function isPoolExhausted(error: unknown): boolean {
  return (error as Error).message === 'timeout exceeded when trying to connect';
}

/**
 * Whether a notice reports that the wait for a synchronous standby was cancelled. The server reports success
 * in that case. A Citus worker reports it from another routine, so the text is checked too.
 */
export function isCancelledWait({ routine, message = '' }: Partial<DatabaseError>): boolean {
  return routine === 'SyncRepWaitForLSN' || message.includes('wait for synchronous replication');
}

/** Advice for operators, by SQLSTATE or Node.js error code. */
const ADVICE: Partial<Record<string, string>> = {
  '28000': "Check the user and sslmode, and the server's pg_hba.conf.",
  '28P01': 'Check the user and the password.',
  '3D000': 'Create the database, or correct its name.',
  '42501':
    'Grant the user SELECT and INSERT on plants. If the service should create the table, also grant CREATE on the schema.',
  '42703': `The table plants must have the columns that these statements create: ${CREATE_TABLE_SQL}`,
  '42P01': `Run: ${CREATE_TABLE_SQL}`,
  '53100': 'Free disk space on the database server.',
  '53300': 'Raise max_connections of the server, or run fewer instances.',
  '55P03':
    'A long transaction, such as a dump, has a lock on the table. Wait until it ends, or cancel it.',
  ECONNREFUSED: 'Check that the server is running, and check the host and the port.',
  ENOTFOUND: 'Check the host name.',
};
/** Advice for errors of OpenSSL and of the TLS verification of Node.js, which name no file. */
const TLS_FILES_ADVICE = 'Check the files in sslrootcert, sslcert and sslkey.';

/** Converts an error to one for an operator: in one line, without secrets, and with advice if there is any. */
export function toOperatorError(store: string, error: unknown): Error {
  // Node tries each address of a host name and reports all failures together, without a message.
  const cause: unknown = error instanceof AggregateError ? error.errors[0] : error;
  const { code, message } = cause as { code?: string; message: string };
  const line = message
    .trim()
    .replaceAll(/\s*\n\s*/g, ' ')
    .replace(
      /^Query read timeout$/,
      'the server did not respond to a statement within the time limit',
    );
  // Node's own messages contain the code.
  const hasCode = line !== '' && (code === undefined || line.includes(code));
  const reason = line === '' ? code : hasCode ? line : `${line} (${code})`;
  const advice = /^ERR_(OSSL|SSL)|CERT/.test(code ?? '') ? TLS_FILES_ADVICE : ADVICE[code ?? ''];
  return new Error(`${store}: ${reason}.${advice === undefined ? '' : ` ${advice}`}`, { cause });
}
