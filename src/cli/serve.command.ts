import type { Command } from 'commander';
import { addEnvFile } from '../server/settings/env-file';

/** `plant-store serve`, or `plant-store` alone: runs the service as the environment configures it. */
export function addServe(program: Command): void {
  program
    .command('serve')
    .summary('run the service; this is the default command')
    .description('Runs the service as the environment configures it.')
    .option(
      '--env-file <file>',
      'read variables from a file; those of the environment take precedence',
    )
    .action(async ({ envFile }: { envFile?: string }) => {
      if (envFile !== undefined) addEnvFile(envFile, process.env);
      await import('../main.js');
    });
}
