import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { INT64_MIN } from '../../int64';
import {
  type ArchivedPlant,
  judgeTaken,
  PlantsArchive,
  type PlantLines,
  type WriteResult,
} from '../../plants.archive';
import { StoreOpenError } from '../store-open.error';
import { isBusy } from './sqlite.errors';
import { isInUse } from './sqlite.files';
import { sqliteMigrations } from './sqlite.migrations';
import { openSqlite } from './sqlite.open';

/** The most plants that one query reads. */
const PAGE_LENGTH = 1000;
/** Bytes of text above which a page is made shorter, to bound the memory for it. */
const PAGE_SIZE = 4 * 2 ** 20;

/** Plants that one statement inserts: several are faster than one, and many no faster than several. */
const ROWS = 25;

/** Milliseconds that opening waits for a lock, as a command holds one that looks whether others use the file. */
const OPEN_TIMEOUT = 5000;
/** Milliseconds that writing waits for the lock of another process. */
const LOCK_TIMEOUT = 60_000;
/** Milliseconds between two attempts to get the lock. */
const LOCK_RETRY = 3;

/** About how many milliseconds one transaction lasts while no other process uses the file. */
const TURN_ALONE = 50;
/**
 * Milliseconds that one transaction lasts about beside a service, and how long the file then is left
 * to the service, as a multiple of that and at least. A service that finds the file locked tries again
 * after 1, 2, 5, 10 ms and so on, and refuses its batch after a second.
 */
const TURN = 2;
const PAUSE_FACTOR = 4;
const SHORTEST_PAUSE = 8;

/** A SQLite file as an archive, on a connection of its own in the present thread. */
export class SqlitePlantsArchive extends PlantsArchive {
  private readonly hasKeys: boolean;
  private readonly select: StatementSync;
  private statements = new Map<number, StatementSync>();
  private dataVersion: number | undefined;

  private constructor(
    private readonly database: DatabaseSync,
    private readonly isReader: boolean,
    private isShared: boolean,
  ) {
    super();
    const version = Number(database.prepare('PRAGMA user_version').get()?.user_version);
    if (version > sqliteMigrations.length) {
      throw new Error(
        `it has schema version ${version}, but this program supports only up to ${sqliteMigrations.length}: run a newer version of the program`,
      );
    }
    const columns = database.prepare("SELECT name FROM pragma_table_info('plants')").all();
    if (columns.length === 0) throw new Error('it has no table plants');
    this.hasKeys = columns.some(({ name }) => name === 'idempotency_key');
    this.select = database.prepare(
      'SELECT id, name, tag FROM plants WHERE id IN (SELECT value FROM json_each(?))',
    );
    // The snapshot begins with the first read.
    if (isReader) database.exec('BEGIN; SELECT 1 FROM plants LIMIT 1');
  }

  /**
   * Opens a file for reading. All reads see a snapshot of this moment.
   *
   * @throws StoreOpenError when it cannot be used
   */
  static openForReading(path: string): SqlitePlantsArchive {
    const file = resolve(path);
    return opened(file, () => {
      if (!existsSync(file)) throw new Error('it does not exist');
      const database = new DatabaseSync(file, {
        readOnly: true,
        readBigInts: true,
        timeout: OPEN_TIMEOUT,
      });
      return closedOnError(database, () => new SqlitePlantsArchive(database, true, true));
    });
  }

  /**
   * Opens a file for writing. Creates it when missing, and brings its schema up to date.
   *
   * @throws StoreOpenError when it cannot be used
   */
  static async openForWriting(path: string): Promise<SqlitePlantsArchive> {
    const file = resolve(path);
    await (await openSqlite(file)).close();
    return opened(file, () => {
      const isShared = isInUse(file);
      const database = new DatabaseSync(file, { readBigInts: true, timeout: OPEN_TIMEOUT });
      return closedOnError(database, () => {
        // What is written is synced at the end, and a crash before that is followed by another run.
        database.exec('PRAGMA synchronous = NORMAL');
        database.exec('PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON');
        const archive = new SqlitePlantsArchive(database, false, isShared);
        // From now on begin() waits for locks: SQLite's own waiting would stop the event loop.
        database.exec('PRAGMA busy_timeout = 0');
        return archive;
      });
    });
  }

  estimateCount(): Promise<number> {
    return Promise.resolve(
      Number(this.database.prepare('SELECT count(*) AS plants FROM plants').get()?.plants),
    );
  }

  async *lines(): AsyncGenerator<PlantLines> {
    const first = this.statementForLines('>=');
    const next = this.statementForLines('>');
    const size = this.database.prepare(
      `SELECT total(size) AS size
       FROM (SELECT octet_length(name) + ifnull(octet_length(tag), 0) AS size
             FROM plants WHERE id >= ? ORDER BY id LIMIT ?)`,
    );
    let last: bigint | undefined;
    for (;;) {
      const from = last ?? INT64_MIN;
      let length = PAGE_LENGTH;
      while (length > 1 && Number(size.get(from, length)?.size) > PAGE_SIZE) {
        length = Math.ceil(length / 8);
      }
      const page = (last === undefined ? first : next).get(from, length) as unknown as {
        readonly count: bigint;
        readonly last: bigint;
        readonly bytes: Uint8Array;
      };
      if (page.count === 0n) return;
      yield { count: Number(page.count), bytes: page.bytes };
      last = page.last;
      await setImmediate();
    }
  }

  /**
   * The text is made by SQLite, which is several times as fast as reading the rows. The lines come as the
   * inner query has them; an `ORDER BY` in `group_concat` would take as long as all the rest.
   */
  private statementForLines(comparison: string): StatementSync {
    const key = this.hasKeys
      ? `|| iif(idempotency_key IS NULL, '', ',"idempotencyKey":"' || lower(hex(idempotency_key)) || '"')`
      : '';
    return this.database.prepare(
      `SELECT count(*) AS count, max(id) AS last, CAST(group_concat(line, '') AS BLOB) AS bytes
       FROM (SELECT id, '{"id":' || id || ',"name":' || json_quote(name) ||
                        iif(tag IS NULL, '', ',"tag":' || json_quote(tag)) ${key} || '}' || char(10) AS line
             FROM plants WHERE id ${comparison} ? ORDER BY id LIMIT ?)`,
    );
  }

  async write(plants: readonly ArchivedPlant[]): Promise<WriteResult> {
    if (!this.hasKeys && plants.some(({ idempotencyKey }) => idempotencyKey !== undefined)) {
      throw new Error(
        'The file has idempotency keys, but the table plants has no column idempotency_key. Remove the keys from the file.',
      );
    }
    let stored = 0;
    let present = 0;
    const conflicts: number[] = [];
    for (let at = 0; at < plants.length;) {
      await this.begin();
      const begin = performance.now();
      try {
        const turn = this.isShared ? TURN : TURN_ALONE;
        while (at < plants.length && performance.now() - begin < turn) {
          const rows = plants.slice(at, at + ROWS);
          const inserted = this.insert(rows);
          stored += inserted;
          if (inserted < rows.length) {
            const judged = this.judge(rows);
            conflicts.push(...judged.conflicts.map((index) => at + index));
            present += rows.length - inserted - judged.conflicts.length;
          }
          at += rows.length;
        }
        this.database.exec('COMMIT');
      } catch (error) {
        if (this.database.isTransaction) this.database.exec('ROLLBACK');
        throw error;
      }
      const pause = Math.max((performance.now() - begin) * PAUSE_FACTOR, SHORTEST_PAUSE);
      await (this.isShared ? setTimeout(pause) : setImmediate());
    }
    return { stored, present, conflicts };
  }

  compare(plants: readonly ArchivedPlant[]): Promise<WriteResult> {
    const { free, present, conflicts } = this.judge(plants);
    return Promise.resolve({ stored: free, present, conflicts });
  }

  async close(): Promise<void> {
    if (!this.isReader) {
      // A commit that writes and syncs makes all commits before it durable.
      this.database.exec('PRAGMA synchronous = FULL');
      await this.begin();
      this.database.exec(`PRAGMA user_version = ${sqliteMigrations.length}; COMMIT`);
    }
    this.database.close();
  }

  private insert(rows: readonly ArchivedPlant[]): number {
    const values: (bigint | string | Buffer | null)[] = [];
    for (const { id, name, tag = null, idempotencyKey: key } of rows) {
      values.push(id, name, tag);
      if (this.hasKeys) values.push(key === undefined ? null : Buffer.from(key, 'hex'));
    }
    return Number(this.statementForRows(rows.length).run(...values).changes);
  }

  private statementForRows(rows: number): StatementSync {
    const known = this.statements.get(rows);
    if (known) return known;
    const [columns, row] = this.hasKeys
      ? ['id, name, tag, idempotency_key', '(?, ?, ?, ?)']
      : ['id, name, tag', '(?, ?, ?)'];
    const statement = this.database.prepare(
      `INSERT INTO plants (${columns}) VALUES ${Array<string>(rows).fill(row).join()} ON CONFLICT DO NOTHING`,
    );
    this.statements.set(rows, statement);
    return statement;
  }

  private judge(plants: readonly ArchivedPlant[]): ReturnType<typeof judgeTaken> {
    const rows = this.select.all(`[${plants.map(({ id }) => id).join()}]`);
    const stored = rows.map((row) => {
      const { id, name, tag } = row as unknown as { id: bigint; name: string; tag: string | null };
      return [id, { id, name, tag: tag ?? undefined }] as const;
    });
    return judgeTaken(plants, new Map(stored));
  }

  /** Takes the lock of who writes. Waits for it without keeping others of this thread waiting. */
  private async begin(): Promise<void> {
    for (const end = performance.now() + LOCK_TIMEOUT; ;) {
      try {
        this.database.exec('BEGIN IMMEDIATE');
        break;
      } catch (error) {
        if (!isBusy(error) || performance.now() > end) throw error;
        this.isShared = true;
        await setTimeout(LOCK_RETRY);
      }
    }
    // It changes with every commit of another connection.
    const version = Number(this.database.prepare('PRAGMA data_version').get()?.data_version);
    if (this.dataVersion !== undefined && version !== this.dataVersion) this.isShared = true;
    this.dataVersion = version;
  }
}

function opened(file: string, open: () => SqlitePlantsArchive): SqlitePlantsArchive {
  try {
    return open();
  } catch (cause) {
    throw new StoreOpenError(`The database file ${file} cannot be used`, cause);
  }
}

function closedOnError<T>(database: DatabaseSync, use: () => T): T {
  try {
    return use();
  } catch (error) {
    database.close();
    throw error;
  }
}
