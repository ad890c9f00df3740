import type { Command } from 'commander';
import { addEnvFile } from '../server/settings/env-file';

/** Adds `plant-store serve`, which `plant-store` alone also runs: runs the service with the settings of the environment. */
export function addServe(program: Command): void {
  program
    .command('serve')
    .summary('run the service; this is the default command')
    .description('Runs the service with the settings of the environment.')
    .option(
      '--env-file <file>',
      'read variables from a file; existing environment variables take precedence',
    )
    .action(async ({ envFile }: { envFile?: string }) => {
      if (envFile !== undefined) addEnvFile(envFile, process.env);
      await import('../main.js');
    });
}
