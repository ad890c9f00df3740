import { isUtf8 } from 'node:buffer';
import { hash, randomBytes } from 'node:crypto';
import { appendFileSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Logger } from '@nestjs/common';
import { InvalidTokenError } from '../errors/errors';
import { OperatorError, OptionError } from '../errors/operator.error';
import { FileWatcher } from './file-watcher';
import { isProduction } from '../environment';
import { type Grant, type Scope, scopeNames } from './scopes';

/** An accepted token, as the operator lists it. */
export interface ListedToken extends Grant {
  /** The SHA-256 digest of the token, in hexadecimal. */
  readonly digest: string;
  /** Where it is listed, such as `line 3`. */
  readonly position: string;
  /** Milliseconds since 1970. Undefined if it never expires. */
  readonly expires: number | undefined;
  /** Whether the token can be guessed, because it is short. Unknown, thus false, if only the digest is listed. */
  readonly isShort: boolean;
}

interface NewToken {
  readonly name?: string;
  /** Milliseconds since 1970. */
  readonly expires?: number;
  readonly scopes?: readonly Scope[] | undefined;
}

/** The minimum length of a token that cannot be guessed. */
const MIN_TOKEN_LENGTH = 16;
/** A token (RFC 6750 section 2.1) or its digest. */
const TOKEN = /^(?:sha256:[0-9a-fA-F]{64}|[A-Za-z0-9._~+/-]+=*)$/;
/**
 * Words of the syntax of scopes, which are not tokens: in `AUTH_TOKENS=abc scope=create,metrics`, `metrics` is a
 * mistake.
 */
const RESERVED_WORDS: readonly string[] = ['scope', ...scopeNames];
/** What limits a token, as it is written behind it. */
const SCOPE_FIELDS = new Map(scopeNames.map((scope) => [`scope=${scope}`, scope]));
const ANY_SCOPE_FIELD = Array.from(SCOPE_FIELDS.keys()).join(' or ');
/** A name begins with a letter, so that a half-written time is never read as a name. */
export const TOKEN_NAME = /^[A-Za-z][\w.@-]{0,63}$/;
/** RFC 3339 section 5.6, date-time. Not hour 24, which `Date.parse` takes for the next day. */
const TIME = /^\d{4}-\d\d-\d\dT(?!24)\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/;

/** Generates a token of 256 random bits. */
export function generateToken(): string {
  return randomBytes(32).toString('base64url');
}

/** Hashes a token with SHA-256, in hexadecimal digits. Tokens are kept and compared by this digest alone. */
export function hashToken(token: string): string {
  return hash('sha256', token);
}

/**
 * Parses a listed token: the token itself or `sha256:` and its digest, then optionally a name, the time of
 * expiry as in RFC 3339, and scopes such as `scope=create`.
 * @param position where it is listed; the message of an error begins with it
 * @throws Error saying what is wrong, without a full stop; the message never shows a token
 */
function parseListedToken(text: string, position: string): ListedToken {
  const [token = '', ...fields] = text.split(/\s+/);
  const name = TOKEN_NAME.test(fields[0] ?? '') ? fields.shift() : undefined;
  const time = TIME.test(fields[0] ?? '') ? fields.shift() : undefined;
  const expires = time === undefined ? undefined : parseTime(time);
  const isTimeInvalid = time !== undefined && expires === undefined;
  const areScopes = fields.every((field) => SCOPE_FIELDS.has(field));
  const isReserved = RESERVED_WORDS.includes(token.replace(/=+$/, ''));
  if (!TOKEN.test(token) || isReserved || isTimeInvalid || !areScopes) {
    throw new Error(
      `${position} must be a token (letters, digits and -._~+/, with = only at its end) or sha256: and 64 hexadecimal digits, then optionally a name (a letter, then letters, digits and _.@-), a time of expiry such as 2027-01-31T12:00:00Z, and ${ANY_SCOPE_FIELD}`,
    );
  }
  const isDigest = token.startsWith('sha256:');
  const digest = isDigest ? token.slice('sha256:'.length).toLowerCase() : hashToken(token);
  const isShort = token.length < MIN_TOKEN_LENGTH;
  if (isShort && isProduction(process.env)) {
    throw new Error(
      `${position} is a token that can be guessed, because it has fewer than ${MIN_TOKEN_LENGTH} characters: with NODE_ENV=production, create another one with "plant-store token create"`,
    );
  }
  const missing = scopeNames.filter((scope) => !fields.includes(`scope=${scope}`));
  return {
    digest,
    position,
    caller: name === undefined ? { name: position, tokenDigest: digest } : { name },
    expires,
    missingScopes: fields.length > 0 ? Object.fromEntries(missing.map((each) => [each, each])) : {},
    isShort,
  };
}

/**
 * Parses a time in the form of {@link TIME}, as milliseconds since 1970. Returns undefined if there is no such time. If a
 * month does not have the day, `Date` would take one of the next month.
 */
function parseTime(time: string): number | undefined {
  const milliseconds = Date.parse(time);
  const day = new Date(time.replace(/T.*/, '')).getUTCDate();
  const hasDay = Number(time.slice(8, 10)) === day;
  return hasDay && !Number.isNaN(milliseconds) ? milliseconds : undefined;
}

/** Parses the option `auth.tokens`: tokens without names and expiry. @throws Error when one of them is invalid */
export function parseTokenList(entries: readonly string[]): ListedToken[] {
  return entries.map((entry, index) => {
    const token = parseListedToken(entry, `token ${index + 1}`);
    // A second token in one string would be taken for a name, and names are logged.
    if (token.caller.tokenDigest !== undefined && token.expires === undefined) return token;
    throw new Error(`only ${ANY_SCOPE_FIELD} may follow ${token.position}`);
  });
}

/**
 * Parses a file with one token per line, in the syntax of {@link parseListedToken}. `#` begins a comment at the start
 * of a line or after white space.
 * @throws Error naming the first invalid line
 */
function parseTokenFile(content: Uint8Array): ListedToken[] {
  if (!isUtf8(content)) throw new Error('it is not UTF-8');
  // The decoder drops a byte order mark.
  const lines = new TextDecoder().decode(content).split(/\r?\n/);
  return lines.flatMap((line, index) => {
    const entry = line.replace(/(?:^|\s)#.*/s, '').trim();
    return entry === '' ? [] : [parseListedToken(entry, `line ${index + 1}`)];
  });
}

/** Reads a file of accepted tokens. @throws OptionError when it cannot be used; the message never shows a token */
export function openTokenFile(path: string): FileWatcher<TokenList> {
  const file = resolve(path);
  const name = `The token file ${file}`;
  try {
    return new FileWatcher(name, [file], (text) => {
      const list = new TokenList(name, parseTokenFile(text));
      if (list.isEmpty()) new Logger('TokenList').warn(`${name} has no token that is valid now.`);
      return list;
    });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const advice = 'it does not exist; create it with "plant-store token create"';
    const reason = code === 'ENOENT' ? advice : message;
    const sentence = `auth.tokensFile names the file ${file}, which cannot be used: ${reason}.`;
    throw new OptionError('auth.tokensFile', sentence);
  }
}

/**
 * Generates a token, and appends its digest to a token file, which is created if it is missing.
 * @param publish called with the token first: if it throws, the file gets no digest of a token that nobody has
 * @throws OperatorError when the file is invalid, because a service would then ignore the change
 */
export function createToken(
  file: string,
  { name, expires, scopes = [] }: NewToken,
  publish: (token: string) => void,
): void {
  appendFileSync(file, '', { mode: 0o600 });
  const content = readFileSync(file);
  try {
    parseTokenFile(content);
  } catch (error) {
    throw new OperatorError(`The token file ${file} is invalid: ${(error as Error).message}.`);
  }
  const token = generateToken();
  publish(token);
  const time = expires && new Date(expires).toISOString().replace(/\.\d+/, '');
  const fields = [`sha256:${hashToken(token)}`, name, time, ...scopes.map((at) => `scope=${at}`)];
  const separator = content.length > 0 && !content.toString().endsWith('\n') ? '\n' : '';
  const line = `${separator}${fields.filter((field) => field !== undefined).join(' ')}\n`;
  // A single write, so that several processes can append at once. The file is not replaced, because it may be a
  // symbolic link, or mounted into a container.
  appendFileSync(file, line, { flush: true });
}

function hasExpired({ expires }: ListedToken): boolean {
  return expires !== undefined && expires <= Date.now();
}

/** Accepts the tokens of an immutable list. If a token is listed twice, the last one counts. */
export class TokenList {
  private readonly byDigest: ReadonlyMap<string, ListedToken>;

  /** Logs a warning about tokens that are too short, which begins with the name of the list. */
  constructor(name: string, tokens: readonly ListedToken[]) {
    const short = tokens.filter(({ isShort }) => isShort).map(({ position }) => position);
    if (short.length > 0) {
      new Logger('TokenList').warn(
        `${name} has a token that can be guessed, because it has fewer than ${MIN_TOKEN_LENGTH} characters (${short.join(', ')}): create another one with "plant-store token create".`,
      );
    }
    this.byDigest = new Map(tokens.map((token) => [token.digest, token]));
  }

  /** Whether no token is accepted now. */
  isEmpty(): boolean {
    return Array.from(this.byDigest.values()).every(hasExpired);
  }

  /**
   * Undefined if the token is not listed. Timing may reveal parts of a digest, but a digest does not reveal the token.
   * @throws InvalidTokenError when it has expired
   */
  verify(digest: string): Grant | undefined {
    const found = this.byDigest.get(digest);
    if (found && hasExpired(found)) throw new InvalidTokenError('The token has expired.');
    return found;
  }
}
