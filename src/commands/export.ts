import { once } from 'node:events';
import { readDatabase } from '../config/database';
import { openArchive } from '../plants/archives';
import { csvHeader, type Format, toCsv } from '../transfer';
import { orAborted } from './interrupt';
import { NewFile } from './new-file';
import { Progress } from './progress';

/** The options of `export`. */
export interface ExportOptions {
  /** Undefined chooses by the name of the file. */
  readonly format?: Format;
  /** The file to write; undefined for the standard output. */
  readonly output?: string;
}

/** Writes all plants of the store to a file or to the standard output. */
export async function exportPlants(
  { output, format = output?.endsWith('.csv') ? 'csv' : 'ndjson' }: ExportOptions,
  signal: AbortSignal,
): Promise<void> {
  const target = output === undefined ? new StandardOutput() : await FileOutput.create(output);
  const progress = new Progress('plants');
  let count = 0;
  try {
    const archive = await openArchive(readDatabase(process.env), 'read');
    try {
      const total = await archive.estimateCount();
      if (format === 'csv') await orAborted(target.write(csvHeader), signal);
      for await (const page of archive.lines()) {
        const text = format === 'csv' ? toCsv(page.text) : page.text;
        await orAborted(target.write(text), signal);
        count += page.count;
        if (!target.isTerminal) progress.show(count, total > 0 ? count / total : undefined);
      }
    } finally {
      progress.clear();
      await archive.close();
    }
    await target.finish();
  } catch (error) {
    target.discard();
    throw error;
  }
  console.error(`Exported ${count} ${count === 1 ? 'plant' : 'plants'}.`);
}

interface Output {
  readonly isTerminal: boolean;
  write(text: string): Promise<void>;
  finish(): Promise<void>;
  discard(): void;
}

class FileOutput implements Output {
  readonly isTerminal = false;

  private constructor(
    private readonly file: NewFile,
    private readonly handle: Awaited<ReturnType<NewFile['create']>>,
  ) {}

  static async create(path: string): Promise<FileOutput> {
    const file = new NewFile(path);
    return new FileOutput(file, await file.create());
  }

  async write(text: string): Promise<void> {
    await this.handle.writeFile(text);
  }

  async finish(): Promise<void> {
    await this.handle.close();
    await this.file.finish();
  }

  discard(): void {
    void this.handle.close().catch(() => undefined);
    this.file.discard();
  }
}

class StandardOutput implements Output {
  readonly isTerminal = process.stdout.isTTY;
  private readonly failed = Promise.withResolvers<never>();

  constructor() {
    this.failed.promise.catch(() => undefined);
    process.stdout.on('error', this.failed.reject);
  }

  /** Resolves when the stream wants more, so that a slow reader does not fill the memory. */
  async write(text: string): Promise<void> {
    const isFree = process.stdout.write(text);
    // An error of a file or a closed pipe arrives with the next turn.
    if (!isFree) await Promise.race([once(process.stdout, 'drain'), this.failed.promise]);
  }

  async finish(): Promise<void> {
    const flushed = new Promise<void>((resolve, reject) => {
      process.stdout.write('', (error) => {
        if (error) reject(error);
        else resolve();
      });
    });
    await Promise.race([flushed, this.failed.promise]);
  }

  discard(): void {
    // Text that was written cannot be taken back.
  }
}
