import { type Command, Option } from 'commander';
import type { ImportOptions } from './import';
import { withInterrupts } from './interrupt';

/** `plant-store import` */
export function addImport(program: Command): void {
  program
    .command('import')
    .summary('store the plants of a file')
    .description(
      'Stores the plants of a file in the store that DATABASE_URL names, by the rules of POST /plants. A plant that is there already counts as present, so that an import that was ended is resumed by running it again. The service may run.',
    )
    .argument('[file]', 'the file; without it the standard input')
    .addOption(
      new Option(
        '--format <format>',
        'JSON Lines, or CSV with a header; without it as the name of the file ends, else ndjson',
      ).choices(['ndjson', 'csv']),
    )
    .addOption(
      new Option('--on-conflict <action>', 'when an id belongs to another plant: end, or go on')
        .choices(['fail', 'skip'])
        .default('fail'),
    )
    .option('--rejects <file>', 'a new file for the lines that are not stored, as they stood')
    .option('--dry-run', 'say what would be stored, and store nothing')
    .addHelpText('after', '\nExample:\n  plant-store import plants.csv --rejects rejects.csv')
    .action((file: string | undefined, options: ImportOptions) =>
      withInterrupts(async (signal) => {
        const { importFile } = await import('./import.js');
        await importFile(file, options, signal);
      }),
    );
}
