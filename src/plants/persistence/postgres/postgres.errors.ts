import { type ClientBase, DatabaseError } from 'pg';
import type { StatementError } from '../insert-batch';
import { CREATE_TABLE_SQL } from './postgres.schema';

/**
 * SQLSTATE codes and classes (PostgreSQL documentation, appendix A) whose errors leave the session usable, and
 * their reach. Any other code has the reach `batch`: nothing was stored.
 */
const REACHES: readonly (readonly [codes: RegExp, reach: StatementError['reach']])[] = [
  // A serialization failure, a deadlock, or a prepared statement that a proxy has removed or uses already.
  [/^(40001|40P01|26000|42P05)/, 'retry'],
  // The server does not know the outcome: a server behind it failed (08), or its own code (XX).
  [/^(08|40003|XX)/, 'session'],
  // Invalid data, a constraint, a limit, a policy, an error that a trigger raises. The letters and digits begin the
  // classes that the SQL standard leaves to applications, except those of PostgreSQL and YugabyteDB.
  [/^(09|2[123]|3[89]|42501|4[45]|54|P0|[6-9I-OQ-WZ])/, 'row'],
];

/** Classifies the error of a statement. Runs another statement to check whether the session has survived. */
export async function classifyError(
  error: unknown,
  session: ClientBase,
): Promise<StatementError['reach']> {
  if (!(error instanceof DatabaseError)) return 'session';
  try {
    // If this succeeds, the server has rolled the transaction back. An error that ends the session may
    // follow a commit.
    await session.query('SELECT 1');
  } catch {
    return 'session';
  }
  return REACHES.find(([codes]) => codes.test(error.code ?? ''))?.[1] ?? 'batch';
}

/** Whether a prepared statement is missing, or exists already: a proxy has moved us to another session. */
export function isUnprepared(error: unknown): boolean {
  return ['26000', '42P05'].includes((error as DatabaseError).code ?? '');
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
  const line = message.trim().replaceAll(/\s*\n\s*/g, ' ');
  // Node's own messages contain the code.
  const hasCode = line !== '' && (code === undefined || line.includes(code));
  const reason = line === '' ? code : hasCode ? line : `${line} (${code})`;
  const advice = /^ERR_(OSSL|SSL)|CERT/.test(code ?? '') ? TLS_FILES_ADVICE : ADVICE[code ?? ''];
  return new Error(`${store}: ${reason}.${advice === undefined ? '' : ` ${advice}`}`, { cause });
}
