import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
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
import { UsageError } from './usage.error';

/** The options of `token create`. */
export interface TokenCreateOptions {
  readonly name?: string;
  /** A duration, such as `12h` or `90d`. */
  readonly expires?: string;
  /** What the token may do; empty for everything. */
  readonly scope: readonly string[];
  /** The token file; undefined for `AUTH_TOKENS_FILE`. */
  readonly file?: string;
}

/**
 * Makes a token, prints it, and adds its digest to a file.
 *
 * @throws UsageError when an option is invalid
 * @throws TokenFileError when the file is invalid
 */
export function createToken({
  name,
  expires,
  scope,
  file = process.env.AUTH_TOKENS_FILE,
}: TokenCreateOptions): void {
  if (!file) throw new UsageError('Name the file with --file, or set AUTH_TOKENS_FILE.');
  if (name !== undefined && !isTokenName(name)) {
    throw new UsageError('--name must be a letter, then up to 63 letters, digits or _.@-');
  }
  if (!scope.every(isScope)) throw new UsageError(`--scope must be ${scopes.join(' or ')}.`);

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
    throw new TokenFileError(`The token file ${file} is invalid: ${error.message}.`);
  }
}
