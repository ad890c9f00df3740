import type { DatabaseError } from 'pg';

/** What an operator can do, by SQLSTATE (PostgreSQL documentation, appendix A) or Node's code. */
const ADVICE: Partial<Record<string, string>> = {
  '25006':
    'The store needs a server that accepts writes: name the primary in the URL, or all hosts of the cluster.',
  '28000': "Check the user and sslmode, and the server's pg_hba.conf.",
  '28P01': 'Check the user and the password.',
  '3D000': 'Create the database, or correct its name.',
  '42501':
    'Grant the user SELECT and INSERT on plants. If the service is to create that table, grant CREATE on the schema too.',
  '42703': 'The table plants must have the columns id bigint, name text and tag text.',
  '42P01': 'Create the table plants (id bigint primary key, name text not null, tag text).',
  '53100': 'Free disk space on the database server.',
  '53300': 'Raise max_connections of the server, or run fewer instances.',
  '55P03':
    'A long transaction, such as a dump, has a lock on the table. Wait until it ends, or cancel it.',
  ECONNREFUSED: 'Check that the server runs, and the host and the port.',
  ENOTFOUND: 'Check the name of the host.',
};

/** For the errors of OpenSSL and of Node's verification, which name no file. */
const FILES = 'Check the files that sslrootcert, sslcert and sslkey name.';

/** Whether the server reported the error. If not, the connection was lost or timed out. */
export function isServerError(error: unknown): error is DatabaseError & { code: string } {
  return error instanceof Error && 'severity' in error && 'code' in error;
}

/** Serialization failures and deadlocks: another attempt may succeed. */
export const isRetryable = hasCode(/^40(001|P01)$/);

/** A prepared statement is missing or exists already: a proxy has put us on another session. */
export const isPreparedStatementFault = hasCode(/^(26000|42P05)$/);

/**
 * Whether one row caused the error, by SQLSTATE class: its data (21, 22), a constraint or a missing
 * partition (23, 44), a row-level policy (42501 from one routine), its size (54), or a trigger (09, 38,
 * 39, 45, P0). A trigger may also use the classes that the SQL standard leaves to applications, less
 * those that PostgreSQL and YugabyteDB use themselves.
 */
export function isRowFault(error: Pick<DatabaseError, 'routine'> & { code: string }): boolean {
  const { code, routine } = error;
  if (code === '42501') return routine === 'ExecWithCheckOptions';
  return /^(?:09|2[123]|3[89]|4[45]|54|P0|(?!72)[6-9I-OQ-WZ])/.test(code);
}

/** Whether all our sessions were in use, which says nothing about the server. */
export function isPoolExhausted(error: unknown): boolean {
  // The driver gives this error no code.
  return String(error).includes('timeout exceeded when trying to connect');
}

/** Whether the server has too little memory or disk space or too few connections. */
export function isOutOfResources(error: unknown): boolean {
  return isServerError(error) && error.code.startsWith('53');
}

/**
 * Whether the server itself does not know if the transaction was committed: it lost a connection to
 * another server (08), says so (40003), or had an internal error (XX).
 */
export const isAmbiguous = hasCode(/^(08|40003|XX)/);

/** A conflict, a lock or a cancellation, which says nothing about the next statement. */
export const isMomentary = hasCode(/^(40|55|57)/);

function hasCode(codes: RegExp): (error: { code: string }) => boolean {
  return ({ code }) => codes.test(code);
}

/** An error for an operator, in one line and without secrets, with advice where there is some. */
export function toOperatorError(where: string, error: unknown): Error {
  const { code, message } = error as { code?: string; message: string };
  const line = message.trim().replaceAll(/\s*\n\s*/g, ' ');
  const reason = line === '' || code === undefined ? line || code : `${line} (${code})`;
  const advice = /^ERR_(OSSL|SSL)|CERT/.test(code ?? '') ? FILES : ADVICE[code ?? ''];
  const sentences = `${where}: ${reason}.${advice === undefined ? '' : ` ${advice}`}`;
  return new Error(sentences, { cause: error });
}
