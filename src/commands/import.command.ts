import { createReadStream, statSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { readDatabase } from '../config/database';
import { openArchive } from '../plants/archives';
import { type Format, type ImportCounts, importPlants, type Rejection } from '../transfer';
import { keepHeapSmall } from '../v8';
import { NewFile } from './new-file';
import { Progress } from './progress';
import { UsageError } from './usage.error';

/** The options of `import`. */
export interface ImportOptions {
  /** Undefined chooses by the name of the file. */
  readonly format?: Format;
  readonly onConflict: 'fail' | 'skip';
  /** The file that gets what is not stored. */
  readonly rejects?: string;
  readonly dryRun?: boolean;
}

/** How many lines are reported one by one. */
const MAX_REPORTS = 20;

/**
 * Stores the plants of a file, and reports what it does not store.
 *
 * @param file undefined or `-` for the standard input
 */
export async function importFile(
  file: string | undefined,
  options: ImportOptions,
  signal: AbortSignal,
): Promise<void> {
  const { dryRun: isDryRun = false } = options;
  const isPiped = file === undefined || file === '-';
  if (isPiped && process.stdin.isTTY)
    throw new UsageError('Name the file to import, or pipe it to the standard input.');
  const size = isPiped ? undefined : statSync(file).size;
  const input = isPiped ? process.stdin : createReadStream(file);
  const rejects = options.rejects === undefined ? undefined : new Rejects(options.rejects);
  const progress = new Progress('plants');
  const counts: ImportCounts = { stored: 0, present: 0, conflicting: 0, invalid: 0 };
  let bytes = 0;

  async function* chunks(): AsyncGenerator<Buffer> {
    const abort = (): void => {
      input.destroy(signal.reason as Error);
    };
    signal.addEventListener('abort', abort);
    for await (const chunk of input as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      yield chunk;
    }
    signal.removeEventListener('abort', abort);
  }

  let reports = 0;
  try {
    const archive = await openArchive(readDatabase(process.env), isDryRun ? 'read' : 'write');
    try {
      await importPlants(chunks(), {
        format: options.format ?? (file?.endsWith('.csv') ? 'csv' : 'ndjson'),
        archive,
        isDryRun,
        onHeader: (raw) => {
          rejects?.begin(raw);
        },
        onRejection: async (rejection) => {
          progress.clear();
          if (++reports <= MAX_REPORTS) {
            console.error(`Line ${rejection.line}: ${rejection.reason}`);
          } else if (reports === MAX_REPORTS + 1) {
            console.error(
              'More lines are not stored; use --rejects FILE to write all of them to a file.',
            );
          }
          await rejects?.add(rejection);
        },
        onBatch: (now) => {
          Object.assign(counts, now);
          keepHeapSmall();
          signal.throwIfAborted();
          if (options.onConflict === 'fail' && counts.conflicting > 0) throw new ConflictError();
          const share = size === undefined ? undefined : bytes / size;
          progress.show(sumOf(counts), share);
        },
      });
    } finally {
      progress.clear();
      await archive.close();
    }
    await rejects?.finish();
  } catch (error) {
    if (error instanceof ConflictError) await rejects?.finish();
    else rejects?.discard();
    if (sumOf(counts) > 0) console.error(describe(counts, isDryRun));
    throw error;
  } finally {
    input.destroy();
  }
  console.error(describe(counts, isDryRun));
  if (counts.invalid > 0) process.exitCode = 1;
}

/** The import ends because ids are taken. */
class ConflictError extends Error {
  override readonly name = 'ConflictError';

  constructor() {
    super('Stopped at a conflict. Use --on-conflict skip to skip such lines.');
  }
}

function sumOf({ stored, present, conflicting, invalid }: ImportCounts): number {
  return stored + present + conflicting + invalid;
}

function describe(
  { stored, present, conflicting, invalid }: ImportCounts,
  isDryRun: boolean,
): string {
  return `${isDryRun ? 'Would store' : 'Stored'} ${stored}, already present ${present}, conflicting ${conflicting}, invalid ${invalid}.`;
}

/** The file of what was not stored. It is created with its first line. */
class Rejects {
  private readonly file: NewFile;
  private handle: FileHandle | undefined;
  private header: string | Buffer | undefined;

  constructor(path: string) {
    this.file = new NewFile(path);
  }

  /** @param header what the file begins with */
  begin(header: string | Buffer): void {
    this.header = header;
  }

  async add({ raw }: Rejection): Promise<void> {
    if (this.handle === undefined) {
      this.handle = await this.file.create();
      if (this.header !== undefined) await this.write(this.header);
    }
    await this.write(raw);
  }

  async finish(): Promise<void> {
    if (this.handle === undefined) return;
    await this.handle.close();
    await this.file.finish();
  }

  discard(): void {
    void this.handle?.close().catch(() => undefined);
    this.file.discard();
  }

  private async write(raw: string | Buffer): Promise<void> {
    await this.handle?.writeFile(raw);
    await this.handle?.writeFile('\n');
  }
}
