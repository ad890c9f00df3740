import { type Command, Option } from 'commander';
import type { ImportOptions } from './import';
import { withInterrupts } from './interrupt';

/** `plant-store import` */
export function addImport(program: Command): void {
  program
    .command('import')
    .summary('store the plants of a file')
    .description(
      'Stores the plants of a file in the store that DATABASE_URL names, by the rules of POST /plants. A plant that is already stored counts as present, so you can resume an interrupted import by running it again. The service may run meanwhile.',
    )
    .argument('[file]', 'the file to read; default: the standard input')
    .addOption(
      new Option(
        '--format <format>',
        'JSON Lines, or CSV with a header; default: csv if the file name ends in .csv, else ndjson',
      ).choices(['ndjson', 'csv']),
    )
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
    .action((file: string | undefined, options: ImportOptions) =>
      withInterrupts(async (signal) => {
        const { importFile } = await import('./import.js');
        await importFile(file, options, signal);
      }),
    );
}
