import { createReadStream, ReadStream, statSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { addAbortSignal } from 'node:stream';
import { type Command, Option } from 'commander';
import type { Format, ImportCounts, Rejection } from '../data';
import { OperatorError, UsageError } from '../errors';
import { formatOf, formatOption } from './export.command';
import { withInterrupts } from './interrupt';
import { NewFile } from './new-file';
import { Progress } from './progress';

interface Options {
  /** Undefined chooses by the name of the file. */
  readonly format?: Format;
  readonly onConflict: 'fail' | 'skip';
  /** The file that gets what is not stored. */
  readonly rejects?: string;
  readonly dryRun?: boolean;
}

/** `plant-store import` */
export function addImport(program: Command): void {
  program
    .command('import')
    .summary('store the plants of a file')
    .description(
      'Stores the plants of a file in the store that DATABASE_URL names, by the rules of POST /plants. A plant that is already stored counts as present, so you can resume an interrupted import by running it again. The service may run meanwhile.',
    )
    .argument('[file]', 'the file to read; default: the standard input')
    .addOption(formatOption())
    .addOption(
      new Option(
        '--on-conflict <action>',
        'what to do when an id belongs to another plant: stop, or skip the line',
      )
        .choices(['fail', 'skip'])
        .default('fail'),
    )
    .option('--rejects <file>', 'a new file for the lines that were not stored, unchanged')
    .option('--dry-run', 'say what would be stored, and store nothing')
    .addHelpText('after', '\nExample:\n  plant-store import plants.csv --rejects rejects.csv')
    .action((file: string | undefined, options: Options) =>
      withInterrupts((signal) => importFile(file, options, signal)),
    );
}

/** How many lines are reported one by one. */
const MAX_REPORTS = 20;

/** @param file undefined or `-` for the standard input */
async function importFile(
  file: string | undefined,
  options: Options,
  signal: AbortSignal,
): Promise<void> {
  const { readDatabase } = await import('../config/index.js');
  const { importPlants, openArchive } = await import('../data/index.js');
  const { dryRun: isDryRun = false } = options;
  const isPiped = file === undefined || file === '-';
  if (isPiped && process.stdin.isTTY)
    throw new UsageError('Name the file to import, or pipe it to the standard input.');
  const size = isPiped ? undefined : statSync(file).size;
  const input = addAbortSignal(signal, isPiped ? process.stdin : createReadStream(file));
  const rejects = options.rejects === undefined ? undefined : new Rejects(options.rejects);
  const progress = new Progress('plants');
  const counts: ImportCounts = { stored: 0, present: 0, conflicting: 0, invalid: 0 };
  let reports = 0;
  try {
    const archive = await openArchive(readDatabase(process.env), isDryRun ? 'read' : 'write');
    try {
      await importPlants(input, {
        format: options.format ?? formatOf(file),
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
          signal.throwIfAborted();
          if (options.onConflict === 'fail' && counts.conflicting > 0) throw new ConflictError();
          progress.show(
            sumOf(counts),
            size && input instanceof ReadStream ? input.bytesRead / size : undefined,
          );
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
class ConflictError extends OperatorError {
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
