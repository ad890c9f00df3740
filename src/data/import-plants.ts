import { InvalidPlantError } from '../errors';
import type { ArchivedPlant } from './archived-plant';
import { csvPlantReader } from './csv';
import { readJsonPlant } from './ndjson';
import type { PlantsArchive } from './plants.archive';
import { type Format, readRecords, type SourceRecord } from './records';

/** Plants that are handed to the store at once, and characters of text after which they are fewer. */
const BATCH_LENGTH = 1000;
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
  let counts: ImportCounts = { stored: 0, present: 0, conflicting: 0, invalid: 0 };
  let batch: (Rejection & { readonly plant: ArchivedPlant })[] = [];
  let rejections: Rejection[] = [];
  let text = 0;
  let read = format === 'ndjson' ? readJsonPlant : undefined;
  let header: string | Buffer | undefined;

  async function flush(): Promise<ImportBatch> {
    const plants = batch.map(({ plant }) => plant);
    const result = isDryRun ? await archive.compare(plants) : await archive.write(plants);
    counts = {
      stored: counts.stored + result.stored,
      present: counts.present + result.present,
      conflicting: counts.conflicting + result.conflicts.length,
      invalid: counts.invalid + rejections.length,
    };
    const isConflict = new Set(result.conflicts);
    const all = [...rejections, ...batch.filter((_, index) => isConflict.has(index))];
    all.sort((one, other) => one.line - other.line);
    batch = [];
    rejections = [];
    text = 0;
    return { counts, rejections: all, header };
  }

  for await (const records of readRecords(chunks, format)) {
    for (const record of records) {
      const { line, raw } = record;
      if (read === undefined) {
        read = csvPlantReader(record);
        header = raw;
        continue;
      }
      try {
        batch.push({ line, raw, plant: read(record), reason: CONFLICT });
      } catch (error) {
        if (!(error instanceof InvalidPlantError)) throw error;
        rejections.push({ line, raw, reason: error.message });
      }
      text += raw.length;
      if (batch.length + rejections.length >= BATCH_LENGTH || text >= BATCH_TEXT) {
        yield await flush();
      }
    }
  }
  if (read === undefined) csvPlantReader(undefined);
  yield await flush();
}

/** Why a plant is not stored, if it is not. */
const CONFLICT = 'A plant with this id exists already, with another name or tag.';
