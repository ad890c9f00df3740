import { OperatorError } from '../errors';
import { scopes as allScopes, splitScopes } from './scope';
import { parseTokenEntry } from './token-digest';
import type { ListedToken } from './token-list';

/** A token file cannot be used. The message is one sentence and never shows a token. */
export class TokenFileError extends OperatorError {
  override readonly name = 'TokenFileError';
  override readonly variable = 'AUTH_TOKENS_FILE';
}

/** A name begins with a letter, so that a half-written time is never read as a name. */
const NAME = /^[A-Za-z][\w.@-]{0,63}$/;
/** RFC 3339 section 5.6, date-time. */
const TIME = /^\d{4}-\d\d-(\d\d)T(?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i;

/** Whether a text is valid as the name of a token in a token file. */
export function isTokenName(text: string): boolean {
  return NAME.test(text);
}

/**
 * Parses a token file. Each line has one token, as the token itself or `sha256:HEX` of it, then
 * optionally a name, the time of expiry as in RFC 3339, and scopes such as `scope=create`. `#` starts
 * a comment.
 *
 * @throws TokenFileError when the file is invalid; the message names the first invalid line
 */
export function parseTokenFile(content: Uint8Array): ListedToken[] {
  const lines = new Map<string, number>();
  return decode(content)
    .split(/\r?\n/)
    .flatMap((text, index): ListedToken[] => {
      const line = index + 1;
      const fields = text.replace(/#.*/s, '').trim().split(/\s+/);
      if (fields[0] === '') return [];
      const token = parseFields(fields, line);

      const first = lines.get(token.digest);
      if (first !== undefined)
        throw new TokenFileError(`line ${line} has the same token as line ${first}`);
      lines.set(token.digest, line);
      return [token];
    });
}

function decode(content: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(content);
  } catch {
    throw new TokenFileError('it is not UTF-8');
  }
}

function parseFields([entry = '', ...others]: readonly string[], line: number): ListedToken {
  const digest = parseTokenEntry(entry);
  if (digest === undefined) {
    throw new TokenFileError(
      `line ${line} must begin with a token (letters, digits and -._~+/, with = only at its end) or sha256: and 64 hexadecimal digits`,
    );
  }
  const split = splitScopes(others);
  if (split === undefined) {
    throw new TokenFileError(
      `line ${line} has an unknown scope: known scopes are ${allScopes.join(' and ')}`,
    );
  }
  const { scopes, rest } = split;
  const name = NAME.test(rest[0] ?? '') ? rest.shift() : undefined;
  const time = rest.shift();
  const expires = time === undefined ? undefined : parseTime(time);
  if (rest.length > 0 || Number.isNaN(expires)) {
    throw new TokenFileError(
      `line ${line} has an invalid field: after the token, only a name (a letter, then letters, digits and _.@-), a time of expiry such as 2027-01-31T12:00:00Z, and scope=create or scope=metrics may follow`,
    );
  }
  return {
    digest,
    name: name ?? `line ${line}`,
    isUnnamed: name === undefined,
    expires,
    scopes,
  };
}

/** Milliseconds since 1970, or NaN when the text is not a time. */
function parseTime(text: string): number {
  const [, day] = TIME.exec(text) ?? [];
  const date = new Date(text.slice(0, 10));
  // Date reads 30 February as 2 March.
  return date.getUTCDate() === Number(day) ? Date.parse(text) : NaN;
}
