import { InvalidPlantError } from '../errors';
import { csvPlantReader } from './csv';
import { readJsonPlant } from './ndjson';
import type { ArchivedPlant, PlantsArchive } from './plants.archive';
import { type Format, readRecords, type SourceRecord } from './records';

/** Plants that are handed to the store at once, and characters of text after which they are fewer. */
const BATCH_LENGTH = 1000;
const BATCH_TEXT = 2 ** 19;

/** A record that was not stored. */
export interface Rejection extends Pick<SourceRecord, 'line' | 'raw'> {
  /** Why, as a sentence. */
  readonly reason: string;
}

export interface ImportCounts {
  readonly stored: number;
  readonly present: number;
  readonly conflicting: number;
  readonly invalid: number;
}

/** What became of some records. */
export interface ImportBatch {
  /** Of all records so far. */
  readonly counts: ImportCounts;
  /** Of this batch, in the order of the file. */
  readonly rejections: readonly Rejection[];
  /** The first record of a CSV file, as it stood. */
  readonly header: string | Buffer | undefined;
}

/**
 * Imports the plants of a file, in batches. Records that are not plants, or whose id is taken by another
 * plant, are not stored but reported. It stops where the caller stops.
 *
 * @throws OperatorError when the file cannot be imported at all
 */
export async function* importPlants(
  chunks: AsyncIterable<Buffer>,
  { format, archive }: { format: Format; archive: Pick<PlantsArchive, 'write'> },
): AsyncGenerator<ImportBatch> {
  let counts: ImportCounts = { stored: 0, present: 0, conflicting: 0, invalid: 0 };
  for await (const { plants, records, invalid, header } of readBatches(chunks, format)) {
    const { stored, present, conflicts } = await archive.write(plants);
    counts = {
      stored: counts.stored + stored,
      present: counts.present + present,
      conflicting: counts.conflicting + conflicts.length,
      invalid: counts.invalid + invalid.length,
    };
    const reason = 'A plant with this id exists already, with another name or tag.';
    const rejections = conflicts
      .flatMap((index) => records[index] ?? [])
      .map(({ line, raw }) => ({ line, raw, reason }))
      .concat(invalid)
      .sort((one, other) => one.line - other.line);
    yield { counts, rejections, header };
  }
}

/** Plants for the store, and the records between them that are not plants. */
class ReadBatch {
  readonly plants: ArchivedPlant[] = [];
  /** Those of the plants, in the same order. */
  readonly records: SourceRecord[] = [];
  readonly invalid: Rejection[] = [];
  private textLength = 0;

  constructor(readonly header?: string | Buffer) {}

  add(record: SourceRecord, read: (record: SourceRecord) => ArchivedPlant): void {
    this.textLength += record.raw.length;
    try {
      this.plants.push(read(record));
      this.records.push(record);
    } catch (error) {
      if (!(error instanceof InvalidPlantError)) throw error;
      this.invalid.push({ line: record.line, raw: record.raw, reason: error.message });
    }
  }

  get isFull(): boolean {
    const { plants, invalid, textLength } = this;
    return plants.length + invalid.length >= BATCH_LENGTH || textLength >= BATCH_TEXT;
  }
}

async function* readBatches(
  chunks: AsyncIterable<Buffer>,
  format: Format,
): AsyncGenerator<ReadBatch> {
  let read = format === 'ndjson' ? readJsonPlant : undefined;
  let batch = new ReadBatch();
  for await (const records of readRecords(chunks, format)) {
    for (const record of records) {
      if (read === undefined) {
        read = csvPlantReader(record);
        batch = new ReadBatch(record.raw);
        continue;
      }
      batch.add(record, read);
      if (batch.isFull) {
        yield batch;
        batch = new ReadBatch(batch.header);
      }
    }
  }
  if (read === undefined) csvPlantReader(undefined);
  yield batch;
}
