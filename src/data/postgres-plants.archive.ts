import { finished } from 'node:stream/promises';
import { setTimeout } from 'node:timers/promises';
import type { PoolClient } from 'pg';
import { from, to } from 'pg-copy-streams';
import {
  type ArchivedPlant,
  judgeTaken,
  PlantsArchive,
  type PlantLines,
  type WriteResult,
} from '../../plants.archive';
import { StoreOpenError } from '../store-open.error';
import { CopyTextReader } from './postgres.copy-text';
import { isRetryable, isServerError, toOperatorError } from './postgres.errors';
import { PostgresHosts } from './postgres.hosts';
import { migrate } from './postgres.migrations';

/** How often a batch is tried that other transactions cause to be rolled back. */
const MAX_ATTEMPTS = 10;

/** A PostgreSQL database as an archive, on one session of its own. */
export class PostgresPlantsArchive extends PlantsArchive {
  /** Whether the ids of the last batch were free, so that those of the next may be too. */
  private prefersCopy = true;

  private constructor(
    private readonly hosts: PostgresHosts,
    private readonly client: PoolClient,
    private readonly hasKeys: boolean,
  ) {
    super();
  }

  /**
   * Connects to the host that accepts writes.
   *
   * @param url with one or more hosts
   * @param isReader whether the database is left as it is; otherwise its schema is brought up to date
   * @throws StoreOpenError when the database cannot be used
   */
  static async open(url: string, isReader: boolean): Promise<PostgresPlantsArchive> {
    const hosts = PostgresHosts.of(url, () => undefined);
    try {
      await hosts.selectWritable();
      const client = await hosts.connect();
      try {
        if (!isReader) await migrate(client);
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
      throw new StoreOpenError('The database cannot be used', withoutPeriod(cause));
    }
  }

  async estimateCount(): Promise<number> {
    const { rows } = await this.client.query<{ plants: string }>(
      `SELECT greatest(reltuples, 0)::bigint::text AS plants FROM pg_class WHERE oid = 'plants'::regclass`,
    );
    return Number(rows[0]?.plants);
  }

  /** One statement is one snapshot. The server sends no faster than the lines are taken. */
  async *lines(): AsyncGenerator<PlantLines> {
    const key = this.hasKeys ? `, encode(idempotency_key, 'hex')` : '';
    const copy = this.client.query(
      to(`COPY (SELECT id, name, tag${key} FROM plants ORDER BY id) TO STDOUT`),
    );
    const reader = new CopyTextReader();
    try {
      for await (const chunk of copy as AsyncIterable<Buffer>) {
        const lines = reader.read(chunk);
        if (lines) yield lines;
      }
      const last = reader.take();
      if (last) yield last;
    } catch (error) {
      throw toOperatorError(this.hosts.name, error);
    }
  }

  async write(plants: readonly ArchivedPlant[]): Promise<WriteResult> {
    const stored = await this.insert(plants);
    if (stored === plants.length) return { stored, present: 0, conflicts: [] };
    const { conflicts } = await this.judge(plants);
    return { stored, present: plants.length - stored - conflicts.length, conflicts };
  }

  async compare(plants: readonly ArchivedPlant[]): Promise<WriteResult> {
    const { free, present, conflicts } = await this.judge(plants);
    return { stored: free, present, conflicts };
  }

  async close(): Promise<void> {
    this.client.release(true);
    await this.hosts.close();
  }

  private async insert(plants: readonly ArchivedPlant[]): Promise<number> {
    if (!this.hasKeys && plants.some(({ idempotencyKey }) => idempotencyKey !== undefined)) {
      throw new Error(
        'The file has idempotency keys, but the table plants has no column idempotency_key. Add the column (bytea), or remove the keys from the file.',
      );
    }
    // Sorted, so that it cannot deadlock with the batches of a service.
    const rows = plants.toSorted((one, other) => (one.id < other.id ? -1 : 1));
    if (this.prefersCopy) {
      try {
        return await this.copyIn(rows);
      } catch (error) {
        // An id is taken, for example. What else is wrong, the insert meets too.
        if (!isServerError(error)) throw toOperatorError(this.hosts.name, error);
      }
    }
    const count = await this.insertFree(rows);
    this.prefersCopy = count === rows.length;
    return count;
  }

  /**
   * Stores all rows or none, at several times the speed of an insert.
   *
   * @throws DatabaseError when an id is taken
   */
  private async copyIn(rows: readonly ArchivedPlant[]): Promise<number> {
    const stream = this.client.query(
      from(`COPY plants (id, name, tag${this.hasKeys ? ', idempotency_key' : ''}) FROM STDIN`),
    );
    const lines = rows.map(({ id, name, tag, idempotencyKey }) => {
      const line = `${id}\t${escapeForCopy(name)}\t${tag === undefined ? NULL : escapeForCopy(tag)}`;
      if (!this.hasKeys) return `${line}\n`;
      return `${line}\t${idempotencyKey ? `\\\\x${idempotencyKey}` : NULL}\n`;
    });
    stream.end(lines.join(''));
    await finished(stream);
    return rows.length;
  }

  /** Stores the rows whose ids are free, and returns how many. */
  private async insertFree(rows: readonly ArchivedPlant[]): Promise<number> {
    const columns: unknown[][] = [
      rows.map(({ id }) => id),
      rows.map(({ name }) => name),
      rows.map(({ tag }) => tag),
    ];
    if (this.hasKeys) {
      columns.push(
        rows.map(({ idempotencyKey }) => (idempotencyKey ? `\\x${idempotencyKey}` : undefined)),
      );
    }
    const [names, types] = this.hasKeys ? [', idempotency_key', ', $4::bytea[]'] : ['', ''];
    for (let attempt = 1; ; attempt++) {
      try {
        const { rowCount } = await this.client.query({
          name: 'import',
          text: `INSERT INTO plants (id, name, tag${names})
                 SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[]${types})
                 ON CONFLICT DO NOTHING`,
          values: columns,
        });
        return rowCount ?? 0;
      } catch (error) {
        if (!isServerError(error) || !isRetryable(error) || attempt === MAX_ATTEMPTS) {
          throw toOperatorError(this.hosts.name, error);
        }
        await setTimeout(Math.random() * 2 ** attempt);
      }
    }
  }

  private async judge(plants: readonly ArchivedPlant[]): Promise<ReturnType<typeof judgeTaken>> {
    try {
      const { rows } = await this.client.query<{ id: string; name: string; tag: string | null }>(
        'SELECT id::text, name, tag FROM plants WHERE id = ANY ($1::bigint[])',
        [plants.map(({ id }) => id)],
      );
      const stored = rows.map(({ id, name, tag }) => {
        const exact = BigInt(id);
        return [exact, { id: exact, name, tag: tag ?? undefined }] as const;
      });
      return judgeTaken(plants, new Map(stored));
    } catch (error) {
      throw toOperatorError(this.hosts.name, error);
    }
  }
}

/** How COPY writes an absent value. */
const NULL = '\\N';

const COPY_ESCAPES: Record<string, string> = {
  '\\': '\\\\',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
};

/** PostgreSQL documentation, COPY, "Text Format". */
function escapeForCopy(text: string): string {
  return text.replace(/[\\\n\r\t]/g, (character) => COPY_ESCAPES[character] ?? character);
}

/** The sentence around it ends with one. */
function withoutPeriod(error: unknown): Error {
  return new Error((error as Error).message.replace(/\.$/, ''), { cause: error });
}
