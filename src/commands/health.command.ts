import type { Command } from 'commander';

/** `plant-store health` */
export function addHealth(program: Command): void {
  program
    .command('health')
    .summary('ask the running service whether it is live or ready')
    .description(
      'Asks the service that the same environment configures (HOST, PORT, TLS_CERT) whether it is live. The exit code is 1 when it is not, or does not answer within 5 seconds.',
    )
    .option('--ready', 'ask whether it is ready, that is, whether its store accepts plants')
    .addHelpText('after', '\nExample:\n  plant-store health --ready')
    .action(async (options: { ready?: boolean }) => {
      const { askHealth } = await import('./health.js');
      await askHealth(options);
    });
}
