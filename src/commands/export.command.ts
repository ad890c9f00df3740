import { readDatabase } from '../config/database';
import { openArchive } from '../plants/archives';
import { csvHeader, CsvWriter, type Format } from '../transfer';
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
      const csv = format === 'csv' ? new CsvWriter() : undefined;
      if (csv) await orAborted(target.write(Buffer.from(csvHeader)), signal);
      for await (const page of archive.lines()) {
        await orAborted(target.write(csv?.write(page.bytes) ?? page.bytes), signal);
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
  /** Resolves when the bytes may be overwritten. */
  write(bytes: Uint8Array): Promise<void>;
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

  async write(bytes: Uint8Array): Promise<void> {
    await this.handle.writeFile(bytes);
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

  constructor() {
    // Each write gets its own error; without a listener the process would end.
    process.stdout.on('error', () => undefined);
  }

  /** Resolves when the bytes are written, so that a slow reader does not fill the memory. */
  write(bytes: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      process.stdout.write(bytes, (error) => {
        if (error) reject(error);
        else resolve();
      });
    });
  }

  finish(): Promise<void> {
    return Promise.resolve();
  }

  discard(): void {
    // Text that was written cannot be taken back.
  }
}
