import { pipeline } from 'node:stream/promises';
import { type Command, Option } from 'commander';
import type { Format } from '../data';
import { withInterrupts } from './interrupt';
import { NewFile } from './new-file';
import { Progress } from './progress';

interface Options {
  readonly format?: Format;
  readonly output?: string;
}

export const formatOption = (): Option =>
  new Option(
    '--format <format>',
    'JSON Lines, or CSV with a header; default: csv if the file name ends in .csv, else ndjson',
  ).choices(['ndjson', 'csv']);

export const formatOf = (file = ''): Format => (file.endsWith('.csv') ? 'csv' : 'ndjson');

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
  const file = output === undefined ? undefined : new NewFile(output);
  const target = (await file?.create())?.createWriteStream() ?? process.stdout;
  const progress = new Progress('plants');
  let count = 0;
  try {
    const archive = await openArchive(readDatabase(process.env), 'read');
    async function* write(): AsyncGenerator<string> {
      if (format === 'csv') yield csvHeader;
      const total = await archive.estimateCount();
      for await (const plants of archive.pages()) {
        yield format === 'csv' ? toCsv(plants) : toNdjson(plants);
        count += plants.length;
        // On the terminal that shows the plants, it would be among them.
        if (file || !process.stdout.isTTY) progress.show(count, count / Math.max(total, 1));
      }
    }
    try {
      await pipeline(write, target, { signal, end: file !== undefined });
    } finally {
      progress.clear();
      await archive.close();
    }
    await file?.finish();
  } catch (error) {
    file?.discard();
    throw error;
  }
  console.error(`Exported ${count} ${count === 1 ? 'plant' : 'plants'}.`);
}
