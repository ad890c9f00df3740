import type { Command } from 'commander';
import { withInterrupts } from './interrupt';

/** `plant-store restore` */
export function addRestore(program: Command): void {
  program
    .command('restore')
    .summary('put a backup in the place of the store')
    .description(
      'Checks a backup and puts it in the place of the SQLite file that DATABASE_URL names. The service must not run. What was there before is kept beside it. For PostgreSQL it prints the line to use.',
    )
    .argument('<file>', 'the backup')
    .addHelpText('after', '\nExample:\n  plant-store restore /backups/plants-monday.db')
    .action((file: string) =>
      withInterrupts(async (signal) => {
        const { restore } = await import('./restore.js');
        await restore(file, signal);
      }),
    );
}
