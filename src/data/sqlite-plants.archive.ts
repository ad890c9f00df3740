import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { StoreOpenError } from '../plants/persistence';
import { isBusy, isInUse, openSqlite } from '../plants/persistence/sqlite';
import {
  type ArchivedPlant,
  PlantsArchive,
  type PlantRow,
  toArchivedPlant,
} from './plants.archive';
import { readSchema } from './sqlite.maintenance';

/** The most plants of a page. */
const PAGE_LENGTH = 500;
/** Characters of text after which a page ends early, to bound its memory. */
const PAGE_TEXT = 2 ** 20;

/** Milliseconds that opening waits for a lock: of a command that starts, or of a service under load. */
const OPEN_TIMEOUT = 5000;

/** Plants that one transaction stores, in some two milliseconds. */
const TRANSACTION_LENGTH = 500;
/**
 * How long the file is left to a service after each transaction: a multiple of its duration, and at
 * least so many milliseconds. A service that finds the file locked tries again after 1, 2, 5, 10 ms and
 * so on, and refuses its batch after a second.
 */
const PAUSE_FACTOR = 4;
const SHORTEST_PAUSE = 8;

/** A SQLite file as an archive, on a connection of its own in the present thread. */
export class SqlitePlantsArchive extends PlantsArchive {
  private dataVersion: number | undefined;

  private constructor(
    private readonly database: DatabaseSync,
    hasKeys: boolean,
    private readonly isReader: boolean,
    /** Whether other processes use the file. */
    private isShared: boolean,
  ) {
    super(hasKeys);
  }

  /**
   * Opens a file. A reader sees a snapshot of this moment. A writer creates the file when it is missing,
   * and brings its schema up to date.
   *
   * @throws StoreOpenError when it cannot be used
   */
  static async open(path: string, use: 'read' | 'write'): Promise<SqlitePlantsArchive> {
    const file = resolve(path);
    if (use === 'write') await (await openSqlite(file)).close();
    try {
      return SqlitePlantsArchive.openFile(file, use === 'read');
    } catch (cause) {
      throw new StoreOpenError(`The database file ${file} cannot be used`, cause);
    }
  }

  private static openFile(file: string, isReader: boolean): SqlitePlantsArchive {
    if (!existsSync(file)) throw new Error('it does not exist');
    const isShared = isReader || isInUse(file);
    const database = new DatabaseSync(file, {
      readOnly: isReader,
      readBigInts: true,
      timeout: OPEN_TIMEOUT,
    });
    try {
      const { hasPlants, hasKeys } = readSchema(database);
      if (!hasPlants) throw new Error('it has no table plants');
      // What is written is synced at the end, and a crash before that is followed by another run.
      if (!isReader) {
        database.exec(
          'PRAGMA synchronous = NORMAL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON',
        );
      }
      const archive = new SqlitePlantsArchive(database, hasKeys, isReader, isShared);
      // The snapshot of a reader begins with the first read. A writer waits for locks in begin():
      // SQLite's own waiting would stop the event loop.
      database.exec(isReader ? 'BEGIN; SELECT 1 FROM plants LIMIT 1' : 'PRAGMA busy_timeout = 0');
      return archive;
    } catch (error) {
      database.close();
      throw error;
    }
  }

  estimateCount(): Promise<number> {
    const row = this.database.prepare('SELECT count(*) AS plants FROM plants').get();
    return Promise.resolve(Number(row?.plants));
  }

  async *pages(): AsyncGenerator<ArchivedPlant[]> {
    const key = this.hasKeys
      ? 'iif(idempotency_key IS NULL, NULL, lower(hex(idempotency_key)))'
      : 'NULL';
    const all = this.database.prepare(`SELECT id, name, tag, ${key} FROM plants ORDER BY id`);
    all.setReturnArrays(true);
    let page: ArchivedPlant[] = [];
    let length = 0;
    for (const row of all.iterate() as Iterable<unknown> as Iterable<PlantRow>) {
      const plant = toArchivedPlant(row);
      page.push(plant);
      length += plant.name.length + (plant.tag?.length ?? 0);
      if (page.length < PAGE_LENGTH && length < PAGE_TEXT) continue;
      yield page;
      page = [];
      length = 0;
      await setImmediate();
    }
    if (page.length > 0) yield page;
  }

  async close(): Promise<void> {
    if (!this.isReader) {
      // A commit that writes and syncs makes all commits before it durable.
      this.database.exec('PRAGMA synchronous = FULL');
      await this.begin();
      const { user_version: version } = this.database.prepare('PRAGMA user_version').get() ?? {};
      this.database.exec(`PRAGMA user_version = ${Number(version)}; COMMIT`);
    }
    this.database.close();
  }

  protected async insert(plants: readonly ArchivedPlant[]): Promise<number> {
    let stored = 0;
    const insertion = this.database.prepare(
      'INSERT INTO plants (id, name, tag, idempotency_key) VALUES (?, ?, ?, unhex(?)) ON CONFLICT DO NOTHING',
    );
    for (let at = 0; at < plants.length; at += TRANSACTION_LENGTH) {
      await this.begin();
      const start = performance.now();
      try {
        const rows = plants.slice(at, at + TRANSACTION_LENGTH);
        for (const { id, name, tag = null, idempotencyKey: key = null } of rows) {
          stored += Number(insertion.run(id, name, tag, key).changes);
        }
        this.database.exec('COMMIT');
      } catch (error) {
        if (this.database.isTransaction) this.database.exec('ROLLBACK');
        throw error;
      }
      const pause = Math.max((performance.now() - start) * PAUSE_FACTOR, SHORTEST_PAUSE);
      await (this.isShared ? setTimeout(pause) : setImmediate());
    }
    return stored;
  }

  protected find(ids: readonly bigint[]): Promise<ArchivedPlant[]> {
    const selection = this.database.prepare(
      'SELECT id, name, tag, NULL FROM plants WHERE id IN (SELECT value FROM json_each(?))',
    );
    // Arrays take half the time of objects.
    selection.setReturnArrays(true);
    const rows = selection.all(`[${ids.join()}]`) as unknown as PlantRow[];
    return Promise.resolve(rows.map(toArchivedPlant));
  }

  /** Takes the lock of who writes, which it waits a minute for without blocking the thread. */
  private async begin(): Promise<void> {
    for (const end = performance.now() + 60_000; ;) {
      try {
        this.database.exec('BEGIN IMMEDIATE');
        break;
      } catch (error) {
        if (!isBusy(error) || performance.now() > end) throw error;
        this.isShared = true;
        await setTimeout(3);
      }
    }
    // It changes with every commit of another connection.
    const version = Number(this.database.prepare('PRAGMA data_version').get()?.data_version);
    if (this.dataVersion !== undefined && version !== this.dataVersion) this.isShared = true;
    this.dataVersion = version;
  }
}
