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
    // A crash of the server empties an unlogged table. `tables` has both tables, and all partitions below them.
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
      'array_nulls is off, so a plant without a tag would get the tag "NULL": set it to on',
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
