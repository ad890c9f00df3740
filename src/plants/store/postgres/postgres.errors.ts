import { type ClientBase, DatabaseError } from 'pg';
import type { StatementError } from './insert-batch';

type Reach = StatementError['reach'];

/**
 * SQLSTATE codes and classes (PostgreSQL documentation, appendix A) whose errors leave the session usable, and
 * their reach. Any other code has the reach `batch`: nothing was stored.
 */
const REACHES: readonly (readonly [codes: RegExp, reach: Reach])[] = [
  // A serialization failure, a deadlock, or a prepared statement that a proxy has removed or uses already.
  [/^(40001|40P01|26000|42P05)/, 'retry'],
  // The server does not know the outcome: a server behind it failed (08), or its own code (XX).
  [/^(08|40003|XX)/, 'session'],
  // Invalid data, a constraint, a limit, a policy, an error that a trigger raises. The letters and digits begin the
  // classes that the SQL standard leaves to applications, except those of PostgreSQL and YugabyteDB.
  [/^(09|2[123]|3[89]|42501|4[45]|54|P0|[6-9I-OQ-WZ])/, 'row'],
];

/** Classifies the error of a statement. Assumes that the session survives an error that the server reports. */
export function findReach(error: unknown): Reach {
  if (!(error instanceof DatabaseError)) return 'session';
  return REACHES.find(([codes]) => codes.test(error.code ?? ''))?.[1] ?? 'batch';
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

/** Converts an error to one for an operator: in one line, without secrets, and with advice if there is any. */
export function toOperatorError(store: string, error: unknown): Error {
  // Node tries each address of a host name and reports all failures together, without a message.
  const cause: unknown = error instanceof AggregateError ? error.errors[0] : error;
  const { code = '', message } = cause as { code?: string; message: string };
  const line = message.trim().replaceAll(/\s*\n\s*/g, ' ');
  // Node's own messages contain the code.
  const reason = line.includes(code) ? line : `${line} (${code})`;
  return new Error(`${store}: ${reason}. ${ADVICE[code] ?? ''}`.trimEnd(), { cause });
}
