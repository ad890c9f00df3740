import { type ClientBase, DatabaseError } from 'pg';
import { type FailureKind, StoreFailure } from '../store-driver';
import type { StatementFailure } from './insert-batch';

type Reach = StatementFailure['reach'];

/**
 * SQLSTATE codes and classes (PostgreSQL documentation, appendix A) whose errors leave the session usable, and
 * their reach. Any other code has the reach `batch`: nothing was stored.
 */
const REACHES: Readonly<Record<string, Reach>> = {
  '40001': 'retry', // serialization failure
  '40P01': 'retry', // deadlock
  '26000': 'retry', // a proxy has removed the prepared statement
  '42P05': 'retry', // a proxy uses a prepared statement of this name already
  '40003': 'session', // the server does not know whether the statement completed
  '08': 'session', // the connection to a server behind the server failed
  XX: 'session', // an internal error of the server
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
  YB: 'batch', // an error of YugabyteDB
};

/** Other classes that the SQL standard leaves to applications: a trigger of the operator raises such an error. */
const APPLICATION_CLASS = /^[6-9I-Z]/;

/** Classifies the error of a statement. Assumes that the session survives an error that the server reports. */
export function findReach(error: unknown): Reach {
  if (!(error instanceof DatabaseError)) return 'session';
  const code = error.code ?? '';
  const reach = REACHES[code] ?? REACHES[code.slice(0, 2)];
  return reach ?? (APPLICATION_CLASS.test(code) ? 'row' : 'batch');
}

/** Classifies the error of a statement. Runs another statement to check whether the session has survived. */
export async function classifyError(error: unknown, session: ClientBase): Promise<Reach> {
  const reach = findReach(error);
  if (reach === 'session') return reach;
  try {
    // If this succeeds, the server has rolled the transaction back. An error that ends the session may
    // follow a commit.
    await session.query('SELECT 1');
    return reach;
  } catch {
    return 'session';
  }
}

/** Advice for operators, by SQLSTATE, where the message of the database is not sufficient. */
const ADVICE: Partial<Record<string, string>> = {
  '55P03':
    'A long transaction, such as a dump, has a lock on the table. Wait until it ends, or cancel it.',
};

const KINDS: Readonly<Record<Reach, FailureKind>> = {
  retry: 'notStored',
  row: 'row',
  batch: 'notStored',
  session: 'unknown',
};

/** Converts an error to a failure whose reason is one line, without secrets, and with advice if there is any. */
export function toFailure(store: string, error: unknown, reach: Reach = 'batch'): StoreFailure {
  // Node tries each address of a host name and reports all failures together, without a message.
  const cause: unknown = error instanceof AggregateError ? error.errors[0] : error;
  const { code = '', message } = cause as { code?: string; message: string };
  const line = message.trim().replaceAll(/\s*\n\s*/g, ' ');
  // Node's own messages contain the code.
  const reason = line.includes(code) ? line : `${line} (${code})`;
  const sentence = `${store}: ${reason}. ${ADVICE[code] ?? ''}`.trimEnd();
  return new StoreFailure(KINDS[reach], sentence, code || undefined, { cause });
}
