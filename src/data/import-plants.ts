import { InvalidPlantError } from '../errors';
import type { ArchivedPlant } from './archived-plant';
import { csvPlantReader } from './csv';
import { readJsonPlant } from './ndjson';
import type { PlantsArchive } from './plants.archive';
import { type Format, readRecords, type SourceRecord } from './records';

/** Plants that are handed to the store at once, and characters of text after which they are fewer. */
const BATCH_LENGTH = 2000;
const BATCH_TEXT = 2 ** 19;

/** A record that was not stored. */
export interface Rejection extends Pick<SourceRecord, 'line' | 'raw'> {
  /** Why, as a sentence. */
  readonly reason: string;
}

/** How many records had which outcome. */
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
  options: {
    readonly format: Format;
    readonly archive: PlantsArchive;
    /** Whether nothing is stored. */
    readonly isDryRun: boolean;
  },
): AsyncGenerator<ImportBatch> {
  const { format, archive, isDryRun } = options;
  const batches = readBatches(chunks, format);
  let counts: ImportCounts = { stored: 0, present: 0, conflicting: 0, invalid: 0 };
  for (let next = batches.next(); ;) {
    const { value: batch, done: isOver } = await next;
    if (isOver) return;
    const plants = batch.entries.map(({ plant }) => plant);
    const result = isDryRun ? archive.compare(plants) : archive.write(plants);
    // The next batch is read while the store has this one. Its error is reported in its turn.
    next = batches.next();
    next.catch(() => undefined);
    const { stored, present, conflicts: indexes } = await result;
    const conflicts = indexes.flatMap((index) => batch.entries[index] ?? []);
    counts = {
      stored: counts.stored + stored,
      present: counts.present + present,
      conflicting: counts.conflicting + conflicts.length,
      invalid: counts.invalid + batch.invalid.length,
    };
    const rejections = [...batch.invalid, ...conflicts].sort((one, other) => one.line - other.line);
    yield { counts, rejections, header: batch.header };
  }
}

/** Plants that are handed to the store at once, and the records between them that are not plants. */
interface ReadBatch {
  /** With the reason why a plant is not stored, if it is not. */
  readonly entries: (Rejection & { readonly plant: ArchivedPlant })[];
  readonly invalid: Rejection[];
  readonly header: string | Buffer | undefined;
}

async function* readBatches(
  chunks: AsyncIterable<Buffer>,
  format: Format,
): AsyncGenerator<ReadBatch, undefined> {
  let read = format === 'ndjson' ? readJsonPlant : undefined;
  let header: string | Buffer | undefined;
  let batch: ReadBatch = { entries: [], invalid: [], header };
  let text = 0;
  for await (const records of readRecords(chunks, format)) {
    for (const record of records) {
      const { line, raw } = record;
      if (read === undefined) {
        read = csvPlantReader(record);
        header = raw;
        batch = { entries: [], invalid: [], header };
        continue;
      }
      try {
        batch.entries.push({ line, raw, plant: read(record), reason: CONFLICT });
      } catch (error) {
        if (!(error instanceof InvalidPlantError)) throw error;
        batch.invalid.push({ line, raw, reason: error.message });
      }
      text += raw.length;
      if (batch.entries.length + batch.invalid.length >= BATCH_LENGTH || text >= BATCH_TEXT) {
        yield batch;
        batch = { entries: [], invalid: [], header };
        text = 0;
      }
    }
  }
  if (read === undefined) csvPlantReader(undefined);
  yield batch;
}

const CONFLICT = 'A plant with this id exists already, with another name or tag.';
