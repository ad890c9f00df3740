import { type Command, Option } from 'commander';
import { scopes } from '../plants/auth/caller';
import { isTokenName } from '../plants/auth/listed-token';
import { createToken } from '../plants/auth/token-file';
import { UsageError } from '../plants/errors/operator.error';
import { assertFolder } from './new-file';

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
    .summary('make a token')
    .description('Makes a token, prints it, and appends its digest to a file of accepted tokens.')
    .option('--name <name>', 'the name of the caller that uses it', parseName)
    .option(
      '--expires <duration>',
      'how long it is valid: hours or days, such as 12h or 90d',
      parseDuration,
    )
    .addOption(
      new Option('--scope <scope...>', 'what it may do; default: everything').choices(scopes),
    )
    .option('--file <path>', 'the token file; default: AUTH_TOKENS_FILE')
    .addHelpText(
      'after',
      '\nExample:\n  plant-store token create --name ci --expires 90d --file tokens.txt',
    )
    .action(({ scope, file = process.env.AUTH_TOKENS_FILE, ...rest }: Options) => {
      if (!file) throw new UsageError('Name the file with --file, or set AUTH_TOKENS_FILE.');
      assertFolder(file);
      console.log(createToken(file, { ...rest, scopes: scope }));
    });
}

function parseName(text: string): string {
  if (isTokenName(text)) return text;
  throw new UsageError('--name must be a letter, then up to 63 letters, digits or _.@-');
}

const UNITS: Record<string, number> = { h: 3_600_000, d: 86_400_000 };

/** Reads a duration that begins now. Returns its end, in milliseconds since 1970. */
function parseDuration(text: string): number {
  const [, number, unit = ''] = /^([1-9]\d{0,4})([hd])$/.exec(text) ?? [];
  const time = Date.now() + Number(number) * (UNITS[unit] ?? NaN);
  if (!Number.isNaN(time)) return time;
  throw new UsageError('--expires must be a number of hours or days, such as 12h or 90d.');
}
