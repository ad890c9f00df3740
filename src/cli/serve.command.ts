import type { Command } from 'commander';

/** Adds `plant-store serve`, which `plant-store` alone also runs: runs the service with the settings of the environment. */
export function addServe(program: Command): void {
  program
    .command('serve')
    .summary('run the service; this is the default command')
    .description('Runs the service with the settings of the environment.')
    .action(async () => {
      await import('../main.js');
    });
}
