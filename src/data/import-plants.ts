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
  readonly kind: 'conflicting' | 'invalid';
}

/** The outcomes of the records so far. */
export interface ImportCounts {
  stored: number;
  present: number;
  conflicting: number;
  invalid: number;
}

/** How plants are imported. */
export interface ImportOptions {
  readonly format: Format;
  readonly archive: PlantsArchive;
  /** Whether nothing is stored. */
  readonly isDryRun: boolean;
  /** Called for each record that was not stored, in the order of the file within a batch. */
  readonly onRejection: (rejection: Rejection) => void | Promise<void>;
  /** Called with the first record of a CSV file. */
  readonly onHeader: (raw: string | Buffer) => void;
  /** Called after each batch. Ends the import when it throws. */
  readonly onBatch: (counts: ImportCounts) => void;
}

/**
 * Imports the plants of a file. Records that are not plants, or whose id is taken by another plant,
 * are not stored but reported.
 *
 * @throws OperatorError when the file cannot be imported at all
 */
export async function importPlants(
  chunks: AsyncIterable<Buffer>,
  { format, archive, isDryRun, onRejection, onHeader, onBatch }: ImportOptions,
): Promise<ImportCounts> {
  const counts: ImportCounts = { stored: 0, present: 0, conflicting: 0, invalid: 0 };
  let batch: (Pick<SourceRecord, 'line' | 'raw'> & { readonly plant: ArchivedPlant })[] = [];
  let rejections: Rejection[] = [];
  let text = 0;
  let read = format === 'ndjson' ? readJsonPlant : undefined;

  async function flush(): Promise<void> {
    const plants = batch.map(({ plant }) => plant);
    const result = isDryRun ? await archive.compare(plants) : await archive.write(plants);
    counts.stored += result.stored;
    counts.present += result.present;
    counts.conflicting += result.conflicts.length;
    counts.invalid += rejections.length;
    for (const index of result.conflicts) {
      const { line = 0, raw = '' } = batch[index] ?? {};
      const reason = 'A plant with this id exists already, with another name or tag.';
      rejections.push({ line, raw, reason, kind: 'conflicting' });
    }
    for (const rejection of rejections.sort((one, other) => one.line - other.line)) {
      await onRejection(rejection);
    }
    batch = [];
    rejections = [];
    text = 0;
    onBatch(counts);
  }

  for await (const records of readRecords(chunks, format)) {
    for (const record of records) {
      const { line, raw } = record;
      if (read === undefined) {
        read = csvPlantReader(record);
        onHeader(raw);
        continue;
      }
      try {
        batch.push({ line, raw, plant: read(record) });
      } catch (error) {
        if (!(error instanceof InvalidPlantError)) throw error;
        rejections.push({ line, raw, reason: error.message, kind: 'invalid' });
      }
      text += raw.length;
      if (batch.length + rejections.length >= BATCH_LENGTH || text >= BATCH_TEXT) await flush();
    }
  }
  if (read === undefined) csvPlantReader(undefined);
  await flush();
  return counts;
}
