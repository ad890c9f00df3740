import { type Command, Option } from 'commander';
import type { Format } from '../data';
import { orAborted, withInterrupts } from './interrupt';
import { NewFile } from './new-file';
import { Progress } from './progress';

interface Options {
  /** Undefined chooses by the name of the file. */
  readonly format?: Format;
  /** The file to write; undefined for the standard output. */
  readonly output?: string;
}

/** The option `--format` of export and import. */
export const formatOption = (): Option =>
  new Option(
    '--format <format>',
    'JSON Lines, or CSV with a header; default: csv if the file name ends in .csv, else ndjson',
  ).choices(['ndjson', 'csv']);

/** The format that the name of a file tells. */
export const formatOf = (file = ''): Format => (file.endsWith('.csv') ? 'csv' : 'ndjson');

/** `plant-store export` */
export function addExport(program: Command): void {
  program
    .command('export')
    .summary('write all plants to a file')
    .description(
      'Writes all plants of the store that DATABASE_URL names, in the order of their ids. It is a snapshot of one moment. The service may run meanwhile.',
    )
    .addOption(formatOption())
    .option(
      '--output <file>',
      'the file to write, which must not exist; default: the standard output',
    )
    .addHelpText('after', '\nExample:\n  plant-store export --output plants.csv')
    .action((options: Options) => withInterrupts((signal) => exportPlants(options, signal)));
}

async function exportPlants(
  { output, format = formatOf(output) }: Options,
  signal: AbortSignal,
): Promise<void> {
  const { readDatabase } = await import('../config/index.js');
  const { csvHeader, openArchive, toCsv, toNdjson } = await import('../data/index.js');
  const target = output === undefined ? new StandardOutput() : await FileOutput.create(output);
  const progress = new Progress('plants');
  let count = 0;
  try {
    const archive = await openArchive(readDatabase(process.env), 'read');
    try {
      const total = await archive.estimateCount();
      const serialize = format === 'csv' ? toCsv : toNdjson;
      if (format === 'csv') await orAborted(target.write(csvHeader), signal);
      for await (const plants of archive.pages()) {
        await orAborted(target.write(serialize(plants)), signal);
        count += plants.length;
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
  /** Resolves when the text is written, so that a slow reader does not fill the memory. */
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

  constructor() {
    // Each write gets its own error; without a listener the process would end.
    process.stdout.on('error', () => undefined);
  }

  write(text: string): Promise<void> {
    return new Promise((resolve, reject) => {
      process.stdout.write(text, (error) => {
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
