import type { Command } from 'commander';

/** `plant-store serve`, or `plant-store` alone: runs the service as the environment configures it. */
export function addServe(program: Command): void {
  program
    .command('serve', { isDefault: true })
    .summary('run the service; this is the default command')
    .description('Runs the service as the environment configures it.')
    .option(
      '--env-file <file>',
      'read variables from a file; those of the environment take precedence',
    )
    .addHelpText('after', '\nExample:\n  PORT=8080 plant-store serve')
    .action(async ({ envFile }: { envFile?: string }) => {
      if (envFile !== undefined) {
        const { addEnvFile } = await import('../config/index.js');
        addEnvFile(envFile, process.env);
      }
      await import('../main.js');
    });
}
