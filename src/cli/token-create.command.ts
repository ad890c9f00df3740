import { type Command, Option } from 'commander';
import { scopes } from '../plants/auth/caller';
import { isTokenName } from '../plants/auth/token-list';
import { createToken } from '../plants/auth/token-list';
import { UsageError } from '../plants/errors/operator.error';
import { print } from './print';

interface Options {
  readonly name?: string;
  readonly expires?: number;
  readonly scope?: (typeof scopes)[number][];
  readonly file?: string;
}

export function addTokenCreate(program: Command): void {
  program
    .command('token')
    .summary('create tokens')
    .description('Creates tokens.')
    .command('create')
    .summary('create a token')
    .description('Creates a token, prints it, and appends its digest to a token file.')
    .option('--name <name>', 'the name of the caller that uses the token', parseName)
    .option(
      '--expires <duration>',
      'how long the token is valid, in hours or days, such as 12h or 90d',
      parseDuration,
    )
    .addOption(
      new Option('--scope <scope...>', 'what the token may do (default: everything)').choices(
        scopes,
      ),
    )
    .option('--file <path>', 'the token file (default: AUTH_TOKENS_FILE)')
    .action(({ scope, file = process.env.AUTH_TOKENS_FILE, ...rest }: Options) => {
      if (!file) throw new UsageError('Pass the token file with --file, or set AUTH_TOKENS_FILE.');
      // Prints the token first: without its token, a digest in the file would be useless.
      createToken(file, { ...rest, scopes: scope }, (token) => {
        print(`${token}\n`);
      });
    });
}

function parseName(text: string): string {
  if (isTokenName(text)) return text;
  throw new UsageError(
    '--name must be a letter followed by up to 63 letters, digits or _.@- characters.',
  );
}

const UNITS: Record<string, number> = { h: 3_600_000, d: 86_400_000 };

/** Parses a duration. Returns the time when it ends if it starts now, in milliseconds since 1970. */
function parseDuration(text: string): number {
  const [, number, unit = ''] = /^([1-9]\d{0,4})([hd])$/.exec(text) ?? [];
  const time = Date.now() + Number(number) * (UNITS[unit] ?? NaN);
  if (!Number.isNaN(time)) return time;
  throw new UsageError('--expires must be a number of hours or days, such as 12h or 90d.');
}
