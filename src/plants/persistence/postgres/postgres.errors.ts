import type { DatabaseError } from 'pg';

/** What an operator can do, by SQLSTATE (PostgreSQL documentation, appendix A) or Node's code. */
const ADVICE: Partial<Record<string, string>> = {
  '25006': 'It takes no writes: name the primary in the URL, or every host of the cluster.',
  '28000': "Check the user and sslmode in the URL, and the server's pg_hba.conf.",
  '28P01': 'Check the user and the password in the URL.',
  '3D000': 'Create the database, or correct its name in the URL.',
  '42501':
    'Grant the user SELECT and INSERT on plants, and CREATE on the schema to have it created.',
  '42703': 'The table plants must have the columns id bigint, name text and tag text.',
  '42P01': 'Create the table plants (id bigint primary key, name text not null, tag text).',
  '53100': 'Free disk space on the database server.',
  '53300': 'Raise max_connections of the server, or run fewer instances.',
  ECONNREFUSED: 'Check that the server runs, and the host and the port in the URL.',
  ENOTFOUND: 'Check the host in the URL.',
};

/** An error the server has answered with, in contrast to a connection that was lost. */
export function isServerError(error: unknown): error is DatabaseError & { code: string } {
  return error instanceof Error && 'severity' in error && 'code' in error;
}

/** The transaction was rolled back because of others and is worth another try: serialization, deadlock. */
export function isTransient({ code }: { code: string }): boolean {
  return code === '40001' || code === '40P01';
}

/**
 * The fault lies with the name of a prepared statement: the session has none of that name, or has
 * one already, since it is not the session that prepared it.
 */
export function isNameFault({ code }: { code: string }): boolean {
  return code === '26000' || code === '42P05';
}

/**
 * The fault lies with a row: its data (21, 22), a constraint or a partition that does not take it (23,
 * 44) or a row-level policy (42501, by the routine that says so), its size (54), or a trigger that
 * refuses it, in PostgreSQL's words (09, 38, 39, 45, P0) or its own, for which the SQL standard sets
 * classes aside. PostgreSQL and YugabyteDB have taken some of those.
 */
export function isRowFault({
  code,
  routine,
}: {
  code: string;
  routine?: string | undefined;
}): boolean {
  if (code === '42501') return routine === 'ExecWithCheckOptions';
  return /^(?:09|2[123]|3[89]|4[45]|54|P0|(?!72)[6-9I-OQ-WZ])/.test(code);
}

/** All connections of the pool are in use, which says nothing of the server. */
export class PoolExhaustedError extends Error {
  constructor() {
    // As the driver's pool has it.
    super('timeout exceeded when trying to connect');
  }
}

/** Whether an error, or what caused it, is a {@link PoolExhaustedError} or the driver's own. */
export function isPoolExhausted(error: unknown): boolean {
  return String(error).includes(new PoolExhaustedError().message);
}

/**
 * The server cannot tell what became of the transaction, although the session goes on: a connection
 * behind it was lost (08), the completion is unknown (40003), or its own state is in doubt (XX).
 */
export function isAmbiguous({ code }: { code: string }): boolean {
  return /^(08|40003|XX)/.test(code);
}

/** The fault lies with the moment: what others hold or do, or an operator who cancels a statement. */
export function isPassing({ code }: { code: string }): boolean {
  return /^(40|55|57)/.test(code);
}

/** An error put so that an operator can act on it, in one line and without a secret. */
export function toOperatorError(where: string, error: unknown): Error {
  const { code, message } = error as { code?: string; message: string };
  const reason = message === '' || code === undefined ? message || code : `${message} (${code})`;
  const advice = ADVICE[code ?? ''];
  return new Error(`${where}: ${reason}.${advice === undefined ? '' : ` ${advice}`}`, {
    cause: error,
  });
}
