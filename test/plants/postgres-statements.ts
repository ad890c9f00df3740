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
