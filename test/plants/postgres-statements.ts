import { CONTENT_PROPERTIES } from '../../src/plants/plant';

/** A table as an operator may prepare it, without a column for keys. */
export const TABLE = `CREATE TABLE plants (id bigint PRIMARY KEY, ${CONTENT_PROPERTIES.map((column) => `${column} text`).join(', ')})`;

/** The server processes of a database, to be narrowed by further conditions. */
export const SESSIONS = 'SELECT pid FROM pg_stat_activity WHERE datname = current_database()';

/** Has the table do something in PL/pgSQL with each `NEW` plant before it is inserted. */
export const beforeInsert = (statements: string): string =>
  `CREATE FUNCTION before_insert() RETURNS trigger LANGUAGE plpgsql AS
     $$ BEGIN ${statements}; RETURN NEW; END $$;
   CREATE TRIGGER before_insert BEFORE INSERT ON plants
     FOR EACH ROW EXECUTE FUNCTION before_insert()`;

/** Undoes {@link beforeInsert}. */
export const NOT_BEFORE_INSERT = 'DROP FUNCTION before_insert CASCADE';
