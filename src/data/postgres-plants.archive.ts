import { setTimeout } from 'node:timers/promises';
import type { ClientConfig, PoolClient } from 'pg';
import { OperatorError } from '../errors';
import { StoreOpenError } from '../plants/persistence';
import {
  isRetryable,
  isServerError,
  migrate,
  PostgresHosts,
  toOperatorError,
} from '../plants/persistence/postgres';
import { type ArchivedPlant, PlantsArchive, toArchivedPlant } from './plants.archive';

/** The most plants of a page. */
const PAGE_LENGTH = 500;
/** Bytes of text above which the next page is shorter, to bound the memory for it. */
const PAGE_SIZE = 4 * 2 ** 20;

/** A row as the server sends it, as text. */
type TextRow = readonly [id: string, name: string, tag: string | null, key: string | null];

/** A PostgreSQL database as an archive, on one session of its own. */
export class PostgresPlantsArchive extends PlantsArchive {
  /** Whether an id was taken. Until then, plants are stored without ON CONFLICT, in half the time. */
  private hasTakenIds = false;

  private constructor(
    private readonly hosts: PostgresHosts,
    private readonly client: PoolClient,
    hasKeys: boolean,
  ) {
    super(hasKeys);
  }

  /**
   * Connects to the host that accepts writes. A writer brings the schema up to date.
   *
   * @throws StoreOpenError when the database cannot be used
   */
  static async open(
    where: string | ClientConfig,
    use: 'read' | 'write',
  ): Promise<PostgresPlantsArchive> {
    const hosts = new PostgresHosts(where, () => undefined);
    try {
      await hosts.selectWritable();
      const client = await hosts.connect();
      try {
        if (use === 'write') await migrate(client);
        await client.query('SELECT id, name, tag FROM plants LIMIT 0');
        const { rows } = await client.query(
          `SELECT 1 FROM pg_attribute WHERE attrelid = 'plants'::regclass
           AND attname = 'idempotency_key' AND NOT attisdropped`,
        );
        // Limits that are meant for requests. One statement may read the whole table.
        await client.query('SET statement_timeout = 0');
        return new PostgresPlantsArchive(hosts, client, rows.length > 0);
      } catch (error) {
        client.release(true);
        throw toOperatorError(hosts.name, error);
      }
    } catch (cause) {
      await hosts.close();
      // The sentence around it ends with a period.
      const reason = (cause as Error).message.replace(/\.$/, '');
      throw new StoreOpenError('The database cannot be used', new Error(reason, { cause }));
    }
  }

  /** Which host has which store, for an operator. */
  get stores(): string {
    return this.hosts.describeStores();
  }

  async estimateCount(): Promise<number> {
    const [[plants] = []] = await this.query<[string]>(
      `SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = 'plants'::regclass`,
    );
    return Number(plants);
  }

  async *pages(): AsyncGenerator<ArchivedPlant[]> {
    const key = this.hasKeys ? `encode(idempotency_key, 'hex')` : 'NULL';
    await this.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    await this.query(
      `DECLARE plants_export NO SCROLL CURSOR FOR SELECT id, name, tag, ${key} FROM plants ORDER BY id`,
    );
    const fetch = (length: number): Promise<TextRow[]> => {
      const page = this.query<TextRow>(`FETCH ${length} FROM plants_export`);
      // Its reader may have stopped when it fails.
      page.catch(() => undefined);
      return page;
    };
    let length = 1;
    for (let page = fetch(length); ;) {
      const rows = await page;
      if (rows.length === 0) return;
      const plants = rows.map(toPlant);
      const size = plants.reduce((sum, { name, tag = '' }) => sum + name.length + tag.length, 0);
      const fitting = Math.floor((PAGE_SIZE * plants.length) / Math.max(size, 1));
      length = Math.max(1, Math.min(2 * length, fitting, PAGE_LENGTH));
      // The server reads the next page while this one is written.
      page = fetch(length);
      yield plants;
    }
  }

  async close(): Promise<void> {
    this.client.release(true);
    await this.hosts.close();
  }

  protected async insert(plants: readonly ArchivedPlant[]): Promise<number> {
    // Sorted, so that it cannot deadlock with the batches of a service.
    const rows = plants.toSorted((one, other) => (one.id < other.id ? -1 : 1));
    const columns: unknown[][] = [
      rows.map(({ id }) => id),
      rows.map(({ name }) => name),
      rows.map(({ tag }) => tag),
    ];
    if (this.hasKeys) columns.push(rows.map(({ idempotencyKey: key }) => key && `\\x${key}`));
    const [name, type] = this.hasKeys ? [', idempotency_key', ', $4::bytea[]'] : ['', ''];
    const statement = `INSERT INTO plants (id, name, tag${name})
      SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[]${type})`;
    for (let attempt = 1; ; attempt++) {
      try {
        // A distributed database counts the rows read, so those returned are counted.
        const ending = this.hasTakenIds ? 'ON CONFLICT DO NOTHING RETURNING 1' : '';
        const stored = await this.query(`${statement} ${ending}`, columns);
        return this.hasTakenIds ? stored.length : rows.length;
      } catch (error) {
        const { cause } = error as Error;
        if (!isServerError(cause)) throw error;
        if (!isRetryable(cause) && !this.hasTakenIds) {
          // Of any code: Citus reports a taken id as an internal error.
          this.hasTakenIds = true;
        } else {
          if (!isRetryable(cause) || attempt === 10) throw error;
          await setTimeout(Math.random() * 2 ** attempt);
        }
      }
    }
  }

  protected async find(ids: readonly bigint[]): Promise<ArchivedPlant[]> {
    const rows = await this.query<TextRow>(
      'SELECT id, name, tag, NULL FROM plants WHERE id = ANY ($1::bigint[])',
      [ids],
    );
    return rows.map(toPlant);
  }

  /** @throws OperatorError when that fails, with the error of the driver as its cause */
  private async query<Row extends readonly unknown[]>(
    text: string,
    values: unknown[] = [],
  ): Promise<Row[]> {
    try {
      const { rows } = await this.client.query({ text, values, rowMode: 'array' });
      return rows as unknown as Row[];
    } catch (cause) {
      throw new OperatorError(toOperatorError(this.hosts.name, cause).message, { cause });
    }
  }
}

function toPlant([id, name, tag, key]: TextRow): ArchivedPlant {
  return toArchivedPlant([BigInt(id), name, tag, key]);
}
