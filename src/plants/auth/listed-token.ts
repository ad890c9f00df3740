import { randomBytes } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { InvalidTokenError } from '../errors/errors';
import { type BearerToken, hashToken } from './bearer-token';
import { type Grant, type Scope, scopes as allScopes } from './caller';

/** An accepted token, as the operator lists it. */
export interface ListedToken {
  /** The SHA-256 digest of the token, in hexadecimal. */
  readonly digest: string;
  /** Where the token is listed, such as "line 3". */
  readonly location: string;
  /** Name of the caller; undefined when the operator gives none. */
  readonly name: string | undefined;
  /** Milliseconds since 1970; undefined when it never expires. */
  readonly expires: number | undefined;
  /** Undefined when the token has all scopes. */
  readonly scopes: readonly Scope[] | undefined;
  /** Whether the token can be guessed, because it is short. Unknown, thus false, if only the digest is listed. */
  readonly isShort: boolean;
}

/** The minimum length of a token that cannot be guessed. */
const MIN_TOKEN_LENGTH = 16;

/** The syntax of a bearer token, RFC 6750 section 2.1. */
const B64TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;
const DIGEST = /^sha256:([0-9a-f]{64})$/i;
/** A name begins with a letter, so that a half-written time is never read as a name. */
const NAME = /^[A-Za-z][\w.@-]{0,63}$/;
/** RFC 3339 section 5.6, date-time. */
const TIME = /^\d{4}-\d\d-(\d\d)T(?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i;
const SCOPE_PREFIX = 'scope=';

/** Generates a token of 256 random bits. */
export function generateToken(): string {
  return randomBytes(32).toString('base64url');
}

/** Formats a listed token in the syntax of {@link parseListedToken}. */
export function formatListedToken(
  token: Pick<ListedToken, 'digest'> & Partial<ListedToken>,
): string {
  const { digest, name, expires, scopes = [] } = token;
  const fields = [`sha256:${digest}`];
  if (name !== undefined) fields.push(name);
  if (expires !== undefined) fields.push(new Date(expires).toISOString().replace(/\.\d+/, ''));
  return [...fields, ...scopes.map((scope) => SCOPE_PREFIX + scope)].join(' ');
}

export function isTokenName(text: string): boolean {
  return NAME.test(text);
}

function isScope(text: string): text is Scope {
  return allScopes.some((scope) => scope === text);
}

/**
 * Parses a listed token: the token itself or `sha256:` and its digest, then optionally a name, the time of
 * expiry as in RFC 3339, and scopes such as `scope=create`.
 *
 * @param location where it is listed; the message of an error begins with it
 * @throws Error saying what is wrong, without a full stop; the message never shows a token
 */
export function parseListedToken(text: string, location: string): ListedToken {
  const [entry = '', ...rest] = text.split(/\s+/);
  const digest = parseDigest(entry, location);
  const name = isTokenName(rest[0] ?? '') ? rest.shift() : undefined;
  const isScopeField = rest[0]?.startsWith(SCOPE_PREFIX) ?? true;
  const expires = isScopeField ? undefined : parseTime(rest.shift() ?? '');
  const isPlainList = rest.every((field) => field.startsWith(SCOPE_PREFIX));
  const scopes = rest.map((field) => field.slice(SCOPE_PREFIX.length));
  if (Number.isNaN(expires) || !isPlainList || !scopes.every(isScope)) {
    throw new Error(
      `${location} has an invalid field: after the token, only a name (a letter, then letters, digits and _.@-), a time of expiry such as 2027-01-31T12:00:00Z, and scope=create or scope=metrics may follow`,
    );
  }
  return {
    digest,
    location,
    name,
    expires,
    scopes: scopes.length === 0 ? undefined : scopes,
    isShort: entry.length < MIN_TOKEN_LENGTH,
  };
}

/**
 * Parses the tokens of the option `auth.tokens`, which have no names and do not expire.
 *
 * @throws Error like {@link parseListedToken}, or when a token is repeated
 */
export function parseTokenList(entries: readonly string[]): ListedToken[] {
  const tokens = entries.map((entry, index) => parseListedToken(entry, `token ${index + 1}`));
  // A second token in one string would be taken for a name, and names are logged.
  const named = tokens.find(({ name, expires }) => name !== undefined || expires !== undefined);
  if (named) throw new Error(`only scope=create or scope=metrics may follow ${named.location}`);
  return rejectRepeatedTokens(tokens);
}

/** @throws Error when a token is listed twice */
export function rejectRepeatedTokens(tokens: readonly ListedToken[]): ListedToken[] {
  const listed = new Map<string, ListedToken>();
  for (const token of tokens) {
    const same = listed.get(token.digest);
    if (same) throw new Error(`${token.location} repeats the token of ${same.location}`);
    listed.set(token.digest, token);
  }
  return [...listed.values()];
}

function parseDigest(entry: string, location: string): string {
  // In a comma-separated list, `scope=create,metrics` would otherwise be read as a token named "metrics".
  if (isScope(entry.toLowerCase())) {
    throw new Error(
      `${location} is a scope name, not a token: scopes are written as scope=create scope=metrics`,
    );
  }
  const [, hex] = DIGEST.exec(entry) ?? [];
  if (hex !== undefined) return hex.toLowerCase();
  if (B64TOKEN.test(entry) && !entry.startsWith(SCOPE_PREFIX)) return hashToken(entry);
  throw new Error(
    `${location} must begin with a token (letters, digits and -._~+/, with = only at its end) or sha256: and 64 hexadecimal digits`,
  );
}

/** Milliseconds since 1970, or NaN when the text is not a time. */
function parseTime(text: string): number {
  const [, day] = TIME.exec(text) ?? [];
  const date = new Date(text.slice(0, 10));
  // Date reads 30 February as 2 March.
  return date.getUTCDate() === Number(day) ? Date.parse(text) : NaN;
}

/** An entry of a list, as {@link TokenList.verify} returns it. */
interface ListedGrant extends Grant {
  /** Milliseconds since 1970. */
  readonly expires: number;
}

/** Accepts the tokens of an immutable list. */
export class TokenList {
  private readonly byDigest: ReadonlyMap<string, ListedGrant>;

  /**
   * Logs a warning about tokens that are too short.
   *
   * @param name the name of the list, which begins the warning
   */
  constructor(name: string, tokens: readonly ListedToken[]) {
    const short = tokens.filter(({ isShort }) => isShort).map(({ location }) => location);
    if (short.length > 0) {
      new Logger('TokenList').warn(
        `${name} has a token that can be guessed, because it has fewer than ${MIN_TOKEN_LENGTH} characters (${short.join(', ')}): create another one with "plant-store token create".`,
      );
    }
    this.byDigest = new Map(tokens.map((token) => [token.digest, createGrant(token)]));
  }

  get size(): number {
    return this.byDigest.size;
  }

  /**
   * Looks up a token. Not constant-time: timing may reveal parts of a digest, but a digest does not reveal
   * the token.
   *
   * @returns undefined when the token is not listed
   * @throws InvalidTokenError when it has expired
   */
  verify(token: BearerToken): Grant | undefined {
    const found = this.byDigest.get(token.digest);
    if (found && found.expires <= Date.now()) throw new InvalidTokenError('The token has expired.');
    return found;
  }
}

function createGrant({ digest, location, name, expires, scopes }: ListedToken): ListedGrant {
  const lacks = allScopes.filter((scope) => scopes?.includes(scope) === false);
  return {
    caller: name === undefined ? { name: location, tokenDigest: digest } : { name },
    expires: expires ?? Infinity,
    missingScopes: Object.fromEntries(lacks.map((scope) => [scope, scope])),
  };
}
