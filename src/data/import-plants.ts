import type { ArchivedPlant, PlantsArchive } from '../plants/archives';
import { plantReader, type ReadPlant, RecordError } from './plant-reader';
import { type Format, readRecords } from './records';

/** Plants that are handed to the store at once, and characters of text after which they are fewer. */
const BATCH_LENGTH = 5000;
const BATCH_TEXT = 2 ** 19;

/** A record that was not stored. */
export interface Rejection {
  /** The number of its first line, from 1. */
  readonly line: number;
  /** As it stood. */
  readonly raw: string | Buffer;
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

interface Entry {
  readonly line: number;
  readonly raw: string | Buffer;
  readonly plant: ArchivedPlant;
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
  readonly onHeader: (raw: string | Buffer) => void | Promise<void>;
  /** Called after each batch. Ends the import when it throws. */
  readonly onBatch: (counts: ImportCounts) => void | Promise<void>;
}

/**
 * Imports the plants of a file. Records that are not plants, or whose id is taken by another plant,
 * are not stored but reported.
 *
 * @throws FileError when the file cannot be imported at all
 */
export async function importPlants(
  chunks: AsyncIterable<Buffer>,
  { format, archive, isDryRun, onRejection, onHeader, onBatch }: ImportOptions,
): Promise<ImportCounts> {
  const counts: ImportCounts = { stored: 0, present: 0, conflicting: 0, invalid: 0 };
  let batch: Entry[] = [];
  let rejections: Rejection[] = [];
  let text = 0;
  let read: ReadPlant | undefined;
  let writing: Promise<void> = Promise.resolve();

  /** Stores a batch while the next one is read. */
  async function flush(): Promise<void> {
    const full = { batch, rejections };
    batch = [];
    rejections = [];
    text = 0;
    await writing;
    writing = write(full.batch, full.rejections);
    // Its error is reported where it is awaited.
    writing.catch(() => undefined);
  }

  async function write(batch: readonly Entry[], rejections: Rejection[]): Promise<void> {
    const plants = batch.map(({ plant }) => plant);
    const { stored, present, conflicts } = isDryRun
      ? await archive.compare(plants)
      : await archive.write(plants);
    counts.stored += stored;
    counts.present += present;
    counts.conflicting += conflicts.length;
    counts.invalid += rejections.length;
    for (const index of conflicts) {
      const entry = batch[index];
      if (entry === undefined) continue;
      const { line, raw } = entry;
      const reason = 'A plant with this id exists already, with another name or tag.';
      rejections.push({ line, raw, reason, kind: 'conflicting' });
    }
    for (const rejection of rejections.sort((one, other) => one.line - other.line)) {
      await onRejection(rejection);
    }
    await onBatch(counts);
  }

  try {
    for await (const records of readRecords(chunks, format)) {
      for (const record of records) {
        if (read === undefined) {
          read = plantReader(format, record);
          if (format === 'csv') {
            await onHeader(record.raw);
            continue;
          }
        }
        const { line, raw } = record;
        try {
          batch.push({ line, raw, plant: read(record) });
        } catch (error) {
          if (!(error instanceof RecordError)) throw error;
          rejections.push({ line, raw, reason: await error.explain(), kind: 'invalid' });
        }
        text += raw.length;
        if (batch.length + rejections.length >= BATCH_LENGTH || text >= BATCH_TEXT) await flush();
      }
    }
    if (read === undefined) plantReader(format, undefined);
    await flush();
    await writing;
  } finally {
    // The archive is not closed under it.
    await Promise.allSettled([writing]);
  }
  return counts;
}
