/** How long an insert waits for the transaction of somebody else who has the same id. */
const LOCK_TIMEOUT_MS = 1000;
/** Less than the service waits for a response. PostgreSQL disables it before a commit begins. */
const STATEMENT_TIMEOUT_MS = 7000;

/**
 * Settings that a session sets for itself before it is checked: what was checked stays so when the settings of the
 * server are reloaded. A database that is not PostgreSQL may lack some of them: `current_setting(…, true)` is null
 * then.
 */
export const SESSION_SETTINGS: readonly string[] = [
  // They keep the value that they have, which is checked.
  `SELECT set_config(name, current_setting(name), false)
   FROM (VALUES ('array_nulls'), ('client_min_messages')) AS settings (name)
   WHERE current_setting(name, true) IS NOT NULL`,
  // "local" means "on" as long as no standby has a name. Then commits wait for standbys that get a name later.
  `SELECT set_config('synchronous_commit', CASE
     WHEN current_setting('synchronous_commit') = 'local' AND current_setting('synchronous_standby_names') = '' THEN 'on'
     ELSE current_setting('synchronous_commit') END, false)
   WHERE current_setting('synchronous_commit', true) IS NOT NULL`,
  // A policy that would hide plants is an error.
  `SELECT set_config('row_security', 'off', false) WHERE current_setting('row_security', true) IS NOT NULL`,
  // A statement ends at the server before the service stops waiting for it. A smaller value of the operator stays.
  limitTimeout('lock_timeout', LOCK_TIMEOUT_MS),
  limitTimeout('statement_timeout', STATEMENT_TIMEOUT_MS),
];

/** Returns a statement that lowers a time-out of the session to a maximum. The value 0 means that there is none. */
function limitTimeout(name: string, milliseconds: number): string {
  return `
    SELECT set_config('${name}', '${milliseconds}ms', false) WHERE current_setting('${name}')::interval
    NOT BETWEEN interval '1 ms' AND interval '${milliseconds} ms'`;
}

/** A question to a session about its server, its settings or the tables. */
export interface Check {
  /** A query whose result has the one column `found`. Each row is a reason not to use the session. */
  readonly query: string;
  /** Returns the reason as a sentence for the operator. */
  readonly explain: (found: string) => string;
}

/** Outside production, a session is used although this finds something: test databases turn fsync off. */
export const RISK_CHECK: Check = {
  query: "SELECT 'off' AS found WHERE current_setting('fsync', true) = 'off'",
  explain: () => 'fsync is off, so a power loss could lose plants: set it to on',
};

/**
 * What could reject, change or lose plants. Only the first reason is reported. Settings can come from the server, the
 * database, the role or the URL. A database that is not PostgreSQL may lack some of them: `current_setting(…, true)` is
 * null then.
 */
export const CHECKS: readonly Check[] = [
  {
    // A crash of the server empties an unlogged table. `tables` has both tables, and all partitions below them. The
    // letter p means a permanent table as persistence, and a partitioned one as kind; r is an ordinary table.
    query: `
      WITH RECURSIVE tables AS (
        SELECT oid FROM pg_class WHERE oid IN (to_regclass('plants'), to_regclass('plants_migrations'))
        UNION SELECT inhrelid FROM pg_inherits JOIN tables ON inhparent = oid
      )
      SELECT relname || ' is ' || CASE relpersistence WHEN 'u' THEN 'unlogged' WHEN 't' THEN 'temporary'
        ELSE 'a view or a foreign table' END AS found
      FROM pg_class JOIN tables USING (oid) WHERE relpersistence <> 'p' OR relkind NOT IN ('r', 'p')`,
    explain: (found) => `${found}, so plants could be lost: use an ordinary table`,
  },
  {
    // The primary key does not cover the tables that inherit from this one, but reading it reads them too.
    query: `
      SELECT relname AS found FROM pg_inherits JOIN pg_class ON inhrelid = oid
      WHERE inhparent = to_regclass('plants') AND NOT relispartition`,
    explain: (child) =>
      `the table ${child} inherits from plants, so an id could be stored twice: use partitions, or end the inheritance`,
  },
  {
    // Owners, superusers and roles with BYPASSRLS are exempt.
    query: `
      SELECT relname AS found FROM pg_class
      WHERE oid IN (to_regclass('plants'), to_regclass('plants_migrations')) AND row_security_active(oid)`,
    explain: (table) =>
      `row level security of ${table} applies to this role, so plants could be hidden: disable it, or use a role with BYPASSRLS`,
  },
  {
    query: `
      SELECT 'plants' AS found
      WHERE to_regclass('plants') IS NULL AND to_regclass('plants_migrations') IS NOT NULL`,
    explain: () =>
      'the table plants is missing, although plants_migrations exists: restore the database from a backup',
  },
  {
    query: "SELECT 'on' AS found WHERE current_setting('transaction_read_only') = 'on'",
    explain: () =>
      'the server is a standby, or read-only: connect to the primary, or to a proxy that routes to it',
  },
  {
    query: `
      SELECT current_setting('server_encoding') AS found
      WHERE current_setting('server_encoding') <> 'UTF8'`,
    explain: (encoding) =>
      `the database has the encoding ${encoding}, which cannot store every string: use a database with the encoding UTF8`,
  },
  {
    query: "SELECT 'off' AS found WHERE current_setting('array_nulls', true) = 'off'",
    explain: () =>
      'array_nulls is off, so a missing property would be stored as the text "NULL": set it to on',
  },
  {
    query: "SELECT 'off' AS found WHERE current_setting('synchronous_commit', true) = 'off'",
    explain: () => 'synchronous_commit is off, so a crash could lose commits: set it to on',
  },
  {
    query: `
      SELECT 'local' AS found WHERE current_setting('synchronous_commit', true) = 'local'
      AND current_setting('synchronous_standby_names', true) <> ''`,
    explain: () =>
      'synchronous_commit is local, so commits do not wait for the standbys in synchronous_standby_names: set it to on',
  },
  {
    query: `
      SELECT current_setting('client_min_messages') AS found
      WHERE current_setting('client_min_messages') IN ('error', 'fatal', 'panic')`,
    explain: () =>
      'client_min_messages hides the warning about a commit that was not replicated: set it to warning',
  },
  {
    // The session of a probe would wait as well, and so would that of the next probe.
    query: `
      SELECT 'SyncRep' AS found FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event = 'SyncRep'
      AND query_start < clock_timestamp() - interval '2 seconds' LIMIT 1`,
    explain: () => 'a commit still waits for a synchronous standby: start the standby again',
  },
];
