import { type Command, Option } from 'commander';
import type { ExportOptions } from './export';
import { withInterrupts } from './interrupt';

/** `plant-store export` */
export function addExport(program: Command): void {
  program
    .command('export')
    .summary('write all plants to a file')
    .description(
      'Writes all plants of the store that DATABASE_URL names, in the order of their ids, as they were at one moment. The service may run.',
    )
    .addOption(
      new Option(
        '--format <format>',
        'JSON Lines, or CSV with a header; without it as the name of the file ends, else ndjson',
      ).choices(['ndjson', 'csv']),
    )
    .option('--output <file>', 'the file, which must not exist; without it the standard output')
    .addHelpText('after', '\nExample:\n  plant-store export --output plants.csv')
    .action((options: ExportOptions) =>
      withInterrupts(async (signal) => {
        const { exportPlants } = await import('./export.js');
        await exportPlants(options, signal);
      }),
    );
}
