import type { Command } from 'commander';
import { withInterrupts } from './interrupt';

/** `plant-store backup` */
export function addBackup(program: Command): void {
  program
    .command('backup')
    .summary('copy the store to a file')
    .description(
      'Copies the SQLite file that DATABASE_URL names, with all plants stored so far, and checks the copy. The service may run meanwhile. For PostgreSQL it prints the command to use.',
    )
    .argument('<file>', 'the copy, which must not exist')
    .addHelpText('after', '\nExample:\n  plant-store backup /backups/plants-monday.db')
    .action((file: string) =>
      withInterrupts(async (signal) => {
        const { backUp } = await import('./backup.js');
        await backUp(file, signal);
      }),
    );
}
