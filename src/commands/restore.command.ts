import type { Command } from 'commander';
import { withInterrupts } from './interrupt';

/** `plant-store restore` */
export function addRestore(program: Command): void {
  program
    .command('restore')
    .summary('replace the store with a backup')
    .description(
      'Checks a backup, and replaces the SQLite file that DATABASE_URL names with a copy of it. Stop the service first. The old file is kept under another name. For PostgreSQL it prints the command to use.',
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
