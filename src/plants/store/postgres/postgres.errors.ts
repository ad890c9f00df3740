import { type ClientBase, DatabaseError } from 'pg';
import { type FailureKind, type FailureReach, StoreFailure } from '../store-driver';

/** `retry`: nothing was stored; another attempt may succeed. */
export type ErrorKind = FailureKind | 'retry';

/** SQLSTATE codes and classes (PostgreSQL documentation, appendix A). With any other code, nothing was stored. */
const KINDS: Readonly<Record<string, ErrorKind>> = {
  '40001': 'retry', // serialization failure
  '40P01': 'retry', // deadlock
  '26000': 'retry', // a proxy has removed the prepared statement
  '42P05': 'retry', // a proxy uses a prepared statement of this name already
  '55P03': 'locked', // lock_timeout
  '57014': 'locked', // statement_timeout, whether it waited or ran for so long
  '40003': 'unknown', // the server does not know whether the statement completed
  '08': 'unknown', // the connection to a server behind the server failed
  XX: 'unknown', // an internal error of the server
  '09': 'row', // an error in a trigger
  '21': 'row', // cardinality violation
  '22': 'row', // invalid data
  '23': 'row', // a constraint
  '38': 'row', // an error in an external routine
  '39': 'row', // an invalid call of an external routine
  '42501': 'row', // a policy or a missing privilege
  '44': 'row', // the check option of a view
  '45': 'row', // an error that a trigger of the operator raises
  '54': 'row', // a limit of the server
  P0: 'row', // an error that PL/pgSQL raises
  YB: 'notStored', // an error of YugabyteDB
};

/**
 * Other classes that the SQL standard leaves to applications: a trigger of the operator raises such an error. Those
 * that begin with 5 are PostgreSQL's own.
 */
const APPLICATION_CLASS = /^[6-9I-Z]/;

/** The index that REINDEX CONCURRENTLY builds or drops (its documentation). ON CONFLICT may not know it yet. */
const CONCURRENT_INDEX = /_cc(?:new|old)\d*$/;

/** Classifies the error of a statement, assuming that the session survives an error that the server reports. */
export function classifyError(error: unknown): ErrorKind {
  return error instanceof DatabaseError ? classifyReport(error) : 'unknown';
}

/** The fields of an error, as the server reports them. */
export type ErrorReport = Pick<DatabaseError, 'message' | 'code' | 'constraint'>;

/** Classifies an error by what the server reports. */
export function classifyReport({ code = '', constraint = '' }: ErrorReport): ErrorKind {
  if (code === '23505' && CONCURRENT_INDEX.test(constraint)) return 'retry';
  // A code comes before its class.
  const kind = KINDS[code] ?? KINDS[code.slice(0, 2)];
  return kind ?? (APPLICATION_CLASS.test(code) ? 'row' : 'notStored');
}

/** Does the same, and runs another statement to check whether the session has survived. */
export async function classifyInSession(error: unknown, session: ClientBase): Promise<ErrorKind> {
  const kind = classifyError(error);
  // A row that the server has rejected is not stored, whatever becomes of the session.
  if (kind === 'unknown' || kind === 'row') return kind;
  // If this succeeds, the server has rolled the transaction back. An error that ends the session may follow a commit.
  return session.query('SELECT 1').then(
    () => kind,
    () => 'unknown',
  );
}

/** Converts an error to a failure whose reason is one line, without secrets. */
export function toFailure(
  store: string,
  error: unknown,
  kind: FailureKind = 'notStored',
  reach?: FailureReach,
): StoreFailure {
  const { code = '' } = (error ?? {}) as { code?: string };
  const options = { code: code || undefined, reach, cause: error };
  return new StoreFailure(kind, `${store}: ${describeCauses(error)}.`, options);
}

function describeCauses(error: unknown): string {
  // A host's own function may throw anything, such as a string.
  const {
    code = '',
    message = String(error),
    errors,
  } = (error ?? {}) as Partial<AggregateError> & {
    code?: string;
  };
  // Node tries each address of a host name, and reports all failures together without a message.
  if (errors) return errors.map(describeCauses).join('; ');
  const line = message.trim().replaceAll(/\s*\n\s*/g, ' ');
  // Node's own messages contain the code.
  return line.includes(code) ? line : `${line} (${code})`;
}
