import { type Command, Option } from 'commander';
import type { ExportOptions } from './export';
import { withInterrupts } from './interrupt';

/** `plant-store export` */
export function addExport(program: Command): void {
  program
    .command('export')
    .summary('write all plants to a file')
    .description(
      'Writes all plants of the store that DATABASE_URL names, in the order of their ids. It is a snapshot of one moment. The service may run meanwhile.',
    )
    .addOption(
      new Option(
        '--format <format>',
        'JSON Lines, or CSV with a header; default: csv if the file name ends in .csv, else ndjson',
      ).choices(['ndjson', 'csv']),
    )
    .option(
      '--output <file>',
      'the file to write, which must not exist; default: the standard output',
    )
    .addHelpText('after', '\nExample:\n  plant-store export --output plants.csv')
    .action((options: ExportOptions) =>
      withInterrupts(async (signal) => {
        const { exportPlants } = await import('./export.js');
        await exportPlants(options, signal);
      }),
    );
}
