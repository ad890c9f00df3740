import type { Command } from 'commander';
import type { TokenCreateOptions } from './token-create';

/** `plant-store token create` */
export function addTokenCreate(program: Command): void {
  program
    .command('token')
    .summary('create tokens')
    .description('Creates tokens.')
    .command('create')
    .summary('make a token')
    .description('Makes a token, prints it, and appends its digest to a file of accepted tokens.')
    .option('--name <name>', 'the name of the caller that uses it')
    .option('--expires <duration>', 'how long it is valid: hours or days, such as 12h or 90d')
    .option(
      '--scope <scope>',
      'what it may do: create or metrics; may be repeated; default: both',
      (scope: string, before: string[]) => [...before, scope],
      [],
    )
    .option('--file <path>', 'the token file; default: AUTH_TOKENS_FILE')
    .addHelpText(
      'after',
      '\nExample:\n  plant-store token create --name ci --expires 90d --file tokens.txt',
    )
    .action(async (options: TokenCreateOptions) => {
      const { createToken } = await import('./token-create.js');
      createToken(options);
    });
}
