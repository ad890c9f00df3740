import { Client } from 'pg';
import { CONTENT_PROPERTIES } from '../../src/plants/plant/plant';

/** Creates the table as an operator may prepare it. */
export const TABLE = `CREATE TABLE plants (id bigint PRIMARY KEY, ${CONTENT_PROPERTIES.map((column) => `${column} text`).join(', ')}, idempotency_key bytea)`;

/** Selects the sessions of a database. Tests append further conditions. */
export const SESSIONS = 'SELECT pid FROM pg_stat_activity WHERE datname = current_database()';

/** Returns statements that make the table run PL/pgSQL before each insert of a plant, which is `NEW`. */
export const beforeInsert = (statements: string): string =>
  `CREATE FUNCTION before_insert() RETURNS trigger LANGUAGE plpgsql AS
     $$ BEGIN ${statements}; RETURN NEW; END $$;
   CREATE TRIGGER before_insert BEFORE INSERT ON plants
     FOR EACH ROW EXECUTE FUNCTION before_insert()`;

/** Undoes {@link beforeInsert}. */
export const NOT_BEFORE_INSERT = 'DROP FUNCTION before_insert CASCADE';

/**
 * Sends another statement instead of the first one that contains a text, until mocks are restored. Returns a function
 * that counts how often.
 */
export function replaceStatement(text: string, replacement: string): () => number {
  const query = Reflect.get(Client.prototype, 'query') as (...parameters: unknown[]) => unknown;
  let count = 0;
  jest.spyOn(Client.prototype, 'query').mockImplementation(function (
    this: Client,
    ...parameters: unknown[]
  ) {
    const [statement] = parameters;
    const isMatch = typeof statement === 'string' && statement.includes(text);
    if (count > 0 || !isMatch) return query.apply(this, parameters);
    count++;
    return query.call(this, replacement);
  });
  return () => count;
}
