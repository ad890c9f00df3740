import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import type { Command } from 'commander';
import {
  OperatorError,
  UsageError,
  isTokenName,
  isScope,
  makeToken,
  formatTokenEntry,
  hashToken,
  formatScopes,
  scopes,
  parseTokenFile,
} from '../plants/program';
import { assertFolder } from './new-file';

interface Options {
  readonly name?: string;
  readonly expires?: string;
  /** What the token may do; empty for everything. */
  readonly scope?: readonly string[];
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
    .option('--name <name>', 'the name of the caller that uses it')
    .option('--expires <duration>', 'how long it is valid: hours or days, such as 12h or 90d')
    .option(
      '--scope <scope>',
      'what it may do: create or metrics; may be repeated; default: both',
      (scope: string, before?: string[]) => [...(before ?? []), scope],
    )
    .option('--file <path>', 'the token file; default: AUTH_TOKENS_FILE')
    .addHelpText(
      'after',
      '\nExample:\n  plant-store token create --name ci --expires 90d --file tokens.txt',
    )
    .action(createToken);
}

function createToken(options: Options): void {
  const { name, expires, scope = [], file = process.env.AUTH_TOKENS_FILE } = options;
  if (!file) throw new UsageError('Name the file with --file, or set AUTH_TOKENS_FILE.');
  if (name !== undefined && !isTokenName(name)) {
    throw new UsageError('--name must be a letter, then up to 63 letters, digits or _.@-');
  }
  if (!scope.every(isScope)) {
    throw new UsageError(`--scope must be ${scopes.join(' or ')}.`);
  }

  const token = makeToken();
  const fields = [formatTokenEntry(hashToken(token))];
  if (name !== undefined) fields.push(name);
  if (expires !== undefined) fields.push(formatExpiry(expires));
  fields.push(...formatScopes(scope));
  appendLine(file, fields.join(' '));
  console.log(token);
}

const UNITS: Record<string, number> = { h: 3_600_000, d: 86_400_000 };

/** Formats the time after a duration from now, as in RFC 3339. */
function formatExpiry(duration: string): string {
  const [, number, unit = ''] = /^([1-9]\d{0,4})([hd])$/.exec(duration) ?? [];
  const time = new Date(Date.now() + Number(number) * (UNITS[unit] ?? NaN));
  if (Number.isNaN(time.getTime())) {
    throw new UsageError('--expires must be a number of hours or days, such as 12h or 90d.');
  }
  return time.toISOString().replace(/\.\d+/, '');
}

/**
 * Appends a line with a single write, so that several processes can append at once. It does not
 * replace the file, which may be a symbolic link or mounted into a container.
 *
 * @throws OperatorError when the file is invalid, because a service would then ignore the change
 */
function appendLine(file: string, line: string): void {
  assertFolder(file);
  const descriptor = openSync(file, 'a+', 0o600);
  try {
    const content = readFileSync(descriptor);
    try {
      parseTokenFile(content);
    } catch (error) {
      throw new OperatorError(`The token file ${file} is invalid: ${(error as Error).message}.`);
    }
    const separator = content.length > 0 && !content.toString().endsWith('\n') ? '\n' : '';
    writeSync(descriptor, `${separator}${line}\n`);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
