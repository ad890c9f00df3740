import { randomBytes } from 'node:crypto';
import { LruMap } from 'toad-cache';
import { InvalidTokenError } from '../errors/errors';
import { type BearerToken, hashToken } from './bearer-token';
import { type Grant, type Scope, scopes as allScopes } from './caller';

/** An accepted token, as the operator lists it. */
export interface ListedToken {
  /** Its SHA-256 digest, in hexadecimal. */
  readonly digest: string;
  /** Where it is listed, such as "line 3". */
  readonly place: string;
  /** Name of the caller who uses it; undefined when the operator gives none. */
  readonly name: string | undefined;
  /** Milliseconds since 1970; undefined when it never expires. */
  readonly expires: number | undefined;
  /** Its scopes; undefined when it has all. */
  readonly scopes: readonly Scope[] | undefined;
  /** Whether somebody may find it by trying. */
  readonly isGuessable: boolean;
}

/** What an entry lists apart from where it is listed. */
type TokenFields = Omit<ListedToken, 'place' | 'isGuessable'>;

/** A shorter token can be guessed. */
const MIN_TOKEN_LENGTH = 16;

/** Tokens that everybody tries first: nothing, common words, and those that documentation shows. */
// prettier-ignore
const COMMON_TOKENS = [
  '', 'a', 'abc', 'admin', 'bearer', 'changeme', 'ci', 'demo', 'dev', 'example', 'foo', 'plant-store',
  'plants', 'pass', 'password', 'root', 'secret', 'test', 'token', '123', '1234', '12345', '123456',
  '12345678', '123456789', '1234567890', 'first-token', 'second-token', 'a-good-token',
  'a-long-random-token', 'TOKEN', 'ACCESS_TOKEN', 'AUTH_TOKEN',
];
const COMMON_DIGESTS: ReadonlySet<string> = new Set(COMMON_TOKENS.map(hashToken));

/** RFC 6750 section 2.1, b64token. */
const TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;
const DIGEST = /^sha256:([0-9a-f]{64})$/i;
/** A name begins with a letter, so that a half-written time is never read as a name. */
const NAME = /^[A-Za-z][\w.@-]{0,63}$/;
/** RFC 3339 section 5.6, date-time. */
const TIME = /^\d{4}-\d\d-(\d\d)T(?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i;
const SCOPE = 'scope=';
const SYNTAX_OF_SCOPES = `scopes are written as ${formatScopes(allScopes).join(' ')}`;

/** Makes a token of 256 random bits. */
export function makeToken(): string {
  return randomBytes(32).toString('base64url');
}

/** Writes a listed token as {@link parseListedToken} reads it. */
export function formatListedToken(token: TokenFields): string {
  const { digest, name, expires, scopes } = token;
  const fields = [`sha256:${digest}`];
  if (name !== undefined) fields.push(name);
  if (expires !== undefined) fields.push(new Date(expires).toISOString().replace(/\.\d+/, ''));
  return [...fields, ...formatScopes(scopes)].join(' ');
}

function formatScopes(scopes: readonly Scope[] = []): string[] {
  return scopes.map((scope) => SCOPE + scope);
}

export function isTokenName(text: string): boolean {
  return NAME.test(text);
}

function isScope(text: string): text is Scope {
  return allScopes.some((scope) => scope === text);
}

/**
 * Reads a listed token: the token itself or `sha256:HEX` of it, then optionally a name, the time of
 * expiry as in RFC 3339, and scopes such as `scope=create`.
 *
 * @param place where it is listed, which begins the message
 * @param hasOnlyScopes whether neither name nor time may follow
 * @throws Error saying what is wrong; the message never shows a token
 */
export function parseListedToken(text: string, place: string, hasOnlyScopes = false): ListedToken {
  const [entry = '', ...fields] = text.split(/\s+/);
  const digest = parseDigest(entry, place);
  const { given = [], rest = [] } = Object.groupBy(fields, (field) =>
    field.startsWith(SCOPE) ? 'given' : 'rest',
  );
  const scopes = new Set(given.map((field) => field.slice(SCOPE.length)));
  if (![...scopes].every(isScope)) {
    throw new Error(`${place} has an unknown scope: ${SYNTAX_OF_SCOPES}`);
  }
  if (hasOnlyScopes && rest.length > 0) {
    throw new Error(
      `${place} has an invalid field: after the token, only scope=create or scope=metrics may follow`,
    );
  }
  const name = isTokenName(rest[0] ?? '') ? rest.shift() : undefined;
  const time = rest.shift();
  const expires = time === undefined ? undefined : parseTime(time);
  if (rest.length > 0 || Number.isNaN(expires)) {
    throw new Error(
      `${place} has an invalid field: after the token, only a name (a letter, then letters, digits and _.@-), a time of expiry such as 2027-01-31T12:00:00Z, and scope=create or scope=metrics may follow`,
    );
  }
  const listed = scopes.size === 0 ? undefined : allScopes.filter((scope) => scopes.has(scope));
  // Nothing tells the length of a token from its digest.
  const isShort = entry.length < MIN_TOKEN_LENGTH;
  const isGuessable = isShort || COMMON_DIGESTS.has(digest);
  return { digest, place, name, expires, scopes: listed, isGuessable };
}

/**
 * Warns of tokens that can be guessed.
 *
 * @param where names the list
 * @returns a sentence without its full stop; undefined when there is no such token
 */
export function warnOfGuessable(where: string, tokens: readonly ListedToken[]): string | undefined {
  const places = tokens.filter((token) => token.isGuessable).map(({ place }) => place);
  if (places.length === 0) return undefined;
  return `${where} has a token that can be guessed, because it has fewer than ${MIN_TOKEN_LENGTH} characters or is a common word (${places.join(', ')}): "plant-store token create" makes one that cannot`;
}

/** Reads tokens that only scopes may follow. Throws as {@link parseListedToken}. */
export function parseTokenList(entries: readonly string[]): ListedToken[] {
  const scopesOf = new Map<string, string>();
  return entries.map((entry, index) => {
    const token = parseListedToken(entry, `token ${index + 1}`, true);
    const scopes = String(token.scopes);
    if ((scopesOf.get(token.digest) ?? scopes) !== scopes) {
      throw new Error(`${token.place} is listed before, with other scopes`);
    }
    scopesOf.set(token.digest, scopes);
    return token;
  });
}

function parseDigest(entry: string, place: string): string {
  // `scope=create,metrics` in a list that commas separate would otherwise make a token "metrics".
  if (isScope(entry.toLowerCase())) {
    throw new Error(`${place} is the name of a scope, not a token: ${SYNTAX_OF_SCOPES}`);
  }
  const [, hex] = DIGEST.exec(entry) ?? [];
  if (hex !== undefined) return hex.toLowerCase();
  if (TOKEN.test(entry) && !entry.startsWith(SCOPE)) return hashToken(entry);
  throw new Error(
    `${place} must begin with a token (letters, digits and -._~+/, with = only at its end) or sha256: and 64 hexadecimal digits`,
  );
}

/** Milliseconds since 1970, or NaN when the text is not a time. */
function parseTime(text: string): number {
  const [, day] = TIME.exec(text) ?? [];
  const date = new Date(text.slice(0, 10));
  // Date reads 30 February as 2 March.
  return date.getUTCDate() === Number(day) ? Date.parse(text) : NaN;
}

/** How many accepted tokens a list remembers. The least recently used go first. */
const REMEMBERED = 1000;

interface AcceptedToken extends Grant {
  /** In milliseconds since 1970. */
  readonly expires: number;
}

/** Accepts the tokens of an immutable list. */
export class TokenList {
  readonly size: number;
  private readonly byDigest: ReadonlyMap<string, AcceptedToken>;
  /** By the token itself: its digest is not made at each request. */
  private readonly remembered = new LruMap<AcceptedToken>(REMEMBERED);

  constructor(tokens: readonly ListedToken[]) {
    this.size = tokens.length;
    this.byDigest = new Map(
      tokens.map(({ digest, place, name, expires = Infinity, scopes = allScopes }) => {
        const caller = name === undefined ? { name: place, tokenDigest: digest } : { name };
        const lacks = allScopes.filter((scope) => !scopes.includes(scope));
        return [
          digest,
          { caller, expires, missing: Object.fromEntries(lacks.map((scope) => [scope, scope])) },
        ];
      }),
    );
  }

  /**
   * Its duration may reveal something of a digest, which does not help to find a token.
   *
   * @returns undefined when the token is not listed
   * @throws InvalidTokenError when it has expired
   */
  verify(token: BearerToken): Grant | undefined {
    let found = this.remembered.get(token.text);
    if (found === undefined) {
      found = this.byDigest.get(token.digest);
      if (found === undefined) return undefined;
      this.remembered.set(token.text, found);
    }
    if (found.expires <= Date.now()) throw new InvalidTokenError('The token has expired.');
    return found;
  }
}
