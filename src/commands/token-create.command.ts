import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { parseArgs } from 'node:util';
import {
  formatScopes,
  formatTokenEntry,
  isScope,
  isTokenName,
  makeToken,
  parseTokenFile,
  hashToken,
  scopes,
  TokenFileError,
} from '../auth';
import { type Command, UsageError } from './command';

/** `plant-store token create`: makes a token, prints it, and adds its digest to a file. */
export const tokenCreate: Command = {
  words: ['token', 'create'],
  synopsis: 'token create [--name NAME] [--expires DURATION] [--scope SCOPE]... [--file PATH]',
  summary:
    'makes a token, prints it, and appends its digest to the file (or AUTH_TOKENS_FILE); a duration is 12h or 90d, a scope create or metrics',

  run(args, environment) {
    const { values } = parseArgs({
      args,
      options: {
        name: { type: 'string' },
        expires: { type: 'string' },
        scope: { type: 'string', multiple: true, default: [] },
        file: { type: 'string', default: environment.AUTH_TOKENS_FILE },
      },
    });
    const { name, expires, scope, file } = values;
    if (!file) throw new UsageError('Name the file with --file, or set AUTH_TOKENS_FILE.');
    if (name !== undefined && !isTokenName(name)) {
      throw new UsageError('A name is a letter, then up to 63 letters, digits and _.@-');
    }
    if (!scope.every(isScope)) throw new UsageError(`A scope is ${scopes.join(' or ')}.`);

    const token = makeToken();
    const fields = [formatTokenEntry(hashToken(token))];
    if (name !== undefined) fields.push(name);
    if (expires !== undefined) fields.push(formatExpiry(expires));
    fields.push(...formatScopes(scope));
    appendLine(file, fields.join(' '));
    console.log(token);
  },
};

const UNITS: Record<string, number> = { h: 3_600_000, d: 86_400_000 };

/** Formats the time after a duration from now, as in RFC 3339. */
function formatExpiry(duration: string): string {
  const [, number, unit = ''] = /^([1-9]\d{0,4})([hd])$/.exec(duration) ?? [];
  const time = new Date(Date.now() + Number(number) * (UNITS[unit] ?? NaN));
  if (Number.isNaN(time.getTime())) {
    throw new UsageError('An expiry is a number of hours or days, such as 12h or 90d.');
  }
  return time.toISOString().replace(/\.\d+/, '');
}

/**
 * Appends a line with a single write, so that several processes can append at once. It does not
 * replace the file, which may be a symbolic link or mounted into a container.
 *
 * @throws TokenFileError when the file is invalid, because a service would then ignore the change
 */
function appendLine(file: string, line: string): void {
  const descriptor = openSync(file, 'a+', 0o600);
  try {
    const content = readFileSync(descriptor);
    validate(file, content);
    const separator = content.length > 0 && content.at(-1) !== NEWLINE ? '\n' : '';
    writeSync(descriptor, `${separator}${line}\n`);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

const NEWLINE = 0x0a;

function validate(file: string, content: Uint8Array): void {
  try {
    parseTokenFile(content);
  } catch (error) {
    if (!(error instanceof TokenFileError)) throw error;
    throw new TokenFileError(`${file} is invalid: ${error.message}.`);
  }
}
