import { createReadStream } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { addAbortSignal } from 'node:stream';
import { type Command, Option } from 'commander';
import type { Format, ImportBatch, ImportCounts, Rejection } from '../data';
import { OperatorError, UsageError } from '../errors';
import { formatOf, formatOption } from './export.command';
import { withInterrupts } from './interrupt';
import { NewFile, sizeOf } from './new-file';
import { Progress } from './progress';

interface Options {
  readonly format?: Format;
  readonly onConflict: 'fail' | 'skip';
  /** The file that gets what is not stored. */
  readonly rejects?: string;
  readonly dryRun?: boolean;
}

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
        'what to do when an id belongs to another plant: stop after the current batch, or skip the line',
      )
        .choices(['fail', 'skip'])
        .default('fail'),
    )
    .option('--rejects <file>', 'a new file for the lines that were not stored, unchanged')
    .option('--dry-run', 'say what would be stored, and write no file, not even the rejects')
    .addHelpText('after', '\nExample:\n  plant-store import plants.csv --rejects rejects.csv')
    .action((file: string | undefined, options: Options) =>
      withInterrupts((signal) => importFile(file, options, signal)),
    );
}

/** @param file undefined or `-` for the standard input */
async function importFile(
  file: string | undefined,
  { format = formatOf(file), onConflict, rejects: rejectsFile, dryRun: isDryRun = false }: Options,
  signal: AbortSignal,
): Promise<void> {
  const { readDatabase } = await import('../config/index.js');
  const { importPlants, openArchive, openForDryRun } = await import('../data/index.js');
  const isPiped = file === undefined || file === '-';
  if (isPiped && process.stdin.isTTY) {
    throw new UsageError('Name the file to import, or pipe it to the standard input.');
  }
  const size = isPiped ? undefined : sizeOf(file, 'Name a file, or pipe it to the standard input.');
  const input = addAbortSignal(signal, isPiped ? process.stdin : createReadStream(file));
  const rejects = rejectsFile === undefined ? undefined : new Rejects(new NewFile(rejectsFile));
  const progress = new Progress('plants');
  let counts: ImportCounts = { stored: 0, present: 0, conflicting: 0, invalid: 0 };
  let isStopped = false;
  try {
    const store = readDatabase(process.env);
    const archive = isDryRun ? await openForDryRun(store) : await openArchive(store, 'write');
    try {
      for await (const batch of importPlants(input, { format, archive })) {
        if (batch.rejections.length > 0) progress.clear();
        report(batch.rejections, counts);
        counts = batch.counts;
        if (!isDryRun) await rejects?.add(batch);
        signal.throwIfAborted();
        isStopped = onConflict === 'fail' && counts.conflicting > 0;
        if (isStopped) break;
        progress.show(sumOf(counts), size && input.bytesRead / size);
      }
    } finally {
      progress.clear();
      await archive.close();
    }
    await rejects?.finish();
  } catch (error) {
    rejects?.discard();
    if (sumOf(counts) > 0) console.error(describe(counts, isDryRun));
    throw error;
  } finally {
    input.destroy();
  }
  console.error(describe(counts, isDryRun));
  if (isStopped) {
    throw new OperatorError(
      'Stopped because of a conflict. Use --on-conflict skip to skip such lines.',
    );
  }
  if (counts.invalid > 0) process.exitCode = 1;
}

/** Reports rejections one by one, up to 20 of the whole file. */
function report(rejections: readonly Rejection[], { conflicting, invalid }: ImportCounts): void {
  const free = 20 - conflicting - invalid;
  for (const { line, reason } of rejections.slice(0, Math.max(free, 0))) {
    console.error(`Line ${line}: ${reason}`);
  }
  if (free >= 0 && rejections.length > free) {
    console.error('More lines are not stored; use --rejects FILE to write all of them to a file.');
  }
}

const sumOf = ({ stored, present, conflicting, invalid }: ImportCounts): number =>
  stored + present + conflicting + invalid;

function describe(counts: ImportCounts, isDryRun: boolean): string {
  const { stored, present, conflicting, invalid } = counts;
  return `${isDryRun ? 'Would store' : 'Stored'} ${stored}, already present ${present}, conflicting ${conflicting}, invalid ${invalid}.`;
}

/** The file of what was not stored. It is created with its first line. */
class Rejects {
  private handle: FileHandle | undefined;

  constructor(private readonly file: NewFile) {}

  async add({ rejections, header }: ImportBatch): Promise<void> {
    if (rejections.length === 0) return;
    const lines = rejections.map(({ raw }) => raw);
    if (this.handle === undefined) {
      this.handle = await this.file.create();
      if (header !== undefined) lines.unshift(header);
    }
    for (const part of lines.flatMap((line) => [line, '\n'])) await this.handle.writeFile(part);
  }

  async finish(): Promise<void> {
    await this.handle?.close();
    if (this.handle) await this.file.finish();
  }

  discard(): void {
    void this.handle?.close().catch(() => undefined);
    this.file.discard();
  }
}
