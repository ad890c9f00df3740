import type { Command } from 'commander';
import type { CheckOptions } from './check';
import { withInterrupts } from './interrupt';

/** `plant-store check` */
export function addCheck(program: Command): void {
  program
    .command('check')
    .summary('check the settings, the store and the tokens')
    .description(
      'Checks the environment variables, the store and its schema, the tokens, the keys of the issuer and the certificate. Prints no secret and changes nothing.',
    )
    .option('--deep', 'also read all stored plants')
    .addHelpText('after', '\nExample:\n  plant-store check --deep')
    .action((options: CheckOptions) =>
      withInterrupts(async (signal) => {
        const { check } = await import('./check.js');
        await check(options, signal);
      }),
    );
}
