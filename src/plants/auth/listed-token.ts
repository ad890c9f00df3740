import { randomBytes } from 'node:crypto';
import { LruMap } from 'toad-cache';
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
  /** Whether an attacker may find the token by guessing. */
  readonly isGuessable: boolean;
}

/** The parts of a listed token that its entry contains. */
type TokenFields = Omit<ListedToken, 'location' | 'isGuessable'>;

/** A shorter token can be guessed. */
const MIN_TOKEN_LENGTH = 16;

/** Tokens that attackers try first: the empty one, common words, and examples from documentation. */
// prettier-ignore
const COMMON_TOKENS = [
  '', 'a', 'abc', 'admin', 'bearer', 'changeme', 'ci', 'demo', 'dev', 'example', 'foo', 'plant-store',
  'plants', 'pass', 'password', 'root', 'secret', 'test', 'token', '123', '1234', '12345', '123456',
  '12345678', '123456789', '1234567890', 'first-token', 'second-token', 'a-good-token',
  'a-long-random-token', 'TOKEN', 'ACCESS_TOKEN', 'AUTH_TOKEN',
];
const COMMON_DIGESTS: ReadonlySet<string> = new Set(COMMON_TOKENS.map(hashToken));

/** The syntax of a bearer token, RFC 6750 section 2.1. */
const B64TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;
const DIGEST = /^sha256:([0-9a-f]{64})$/i;
/** A name begins with a letter, so that a half-written time is never read as a name. */
const NAME = /^[A-Za-z][\w.@-]{0,63}$/;
/** RFC 3339 section 5.6, date-time. */
const TIME = /^\d{4}-\d\d-(\d\d)T(?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i;
const SCOPE_PREFIX = 'scope=';
const SCOPE_SYNTAX_HINT = `scopes are written as ${formatScopes(allScopes).join(' ')}`;

/** Generates a token of 256 random bits. */
export function generateToken(): string {
  return randomBytes(32).toString('base64url');
}

/** Formats a listed token in the syntax of {@link parseListedToken}. */
export function formatListedToken(token: TokenFields): string {
  const { digest, name, expires, scopes } = token;
  const fields = [`sha256:${digest}`];
  if (name !== undefined) fields.push(name);
  if (expires !== undefined) fields.push(new Date(expires).toISOString().replace(/\.\d+/, ''));
  return [...fields, ...formatScopes(scopes)].join(' ');
}

function formatScopes(scopes: readonly Scope[] = []): string[] {
  return scopes.map((scope) => SCOPE_PREFIX + scope);
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
 * @param allowsOnlyScopes whether only scopes may follow the token
 * @throws Error saying what is wrong; the message never shows a token
 */
export function parseListedToken(
  text: string,
  location: string,
  allowsOnlyScopes = false,
): ListedToken {
  const [entry = '', ...fields] = text.split(/\s+/);
  const digest = parseDigest(entry, location);
  const { scoped = [], rest = [] } = Object.groupBy(fields, (field) =>
    field.startsWith(SCOPE_PREFIX) ? 'scoped' : 'rest',
  );
  const scopes = new Set(scoped.map((field) => field.slice(SCOPE_PREFIX.length)));
  if (![...scopes].every(isScope)) {
    throw new Error(`${location} has an unknown scope: ${SCOPE_SYNTAX_HINT}`);
  }
  if (allowsOnlyScopes && rest.length > 0) {
    throw new Error(
      `${location} has an invalid field: after the token, only scope=create or scope=metrics may follow`,
    );
  }
  const name = isTokenName(rest[0] ?? '') ? rest.shift() : undefined;
  const time = rest.shift();
  const expires = time === undefined ? undefined : parseTime(time);
  if (rest.length > 0 || Number.isNaN(expires)) {
    throw new Error(
      `${location} has an invalid field: after the token, only a name (a letter, then letters, digits and _.@-), a time of expiry such as 2027-01-31T12:00:00Z, and scope=create or scope=metrics may follow`,
    );
  }
  const listed = scopes.size === 0 ? undefined : allScopes.filter((scope) => scopes.has(scope));
  // The length of a token cannot be told from its digest.
  const isShort = entry.length < MIN_TOKEN_LENGTH;
  const isGuessable = isShort || COMMON_DIGESTS.has(digest);
  return { digest, location, name, expires, scopes: listed, isGuessable };
}

/**
 * Creates a warning about tokens that can be guessed.
 *
 * @param list the name of the list
 * @returns a sentence without its full stop; undefined when no token can be guessed
 */
export function describeGuessableTokens(
  list: string,
  tokens: readonly ListedToken[],
): string | undefined {
  const locations = tokens.filter((token) => token.isGuessable).map(({ location }) => location);
  if (locations.length === 0) return undefined;
  return `${list} has a token that can be guessed, because it has fewer than ${MIN_TOKEN_LENGTH} characters or is a common word (${locations.join(', ')}): create another one with "plant-store token create"`;
}

/** Parses tokens that only scopes may follow. Throws like {@link parseListedToken}. */
export function parseTokenList(entries: readonly string[]): ListedToken[] {
  const scopesOf = new Map<string, string>();
  return entries.map((entry, index) => {
    const token = parseListedToken(entry, `token ${index + 1}`, true);
    const scopes = String(token.scopes);
    if ((scopesOf.get(token.digest) ?? scopes) !== scopes) {
      throw new Error(`${token.location} is listed twice with different scopes`);
    }
    scopesOf.set(token.digest, scopes);
    return token;
  });
}

function parseDigest(entry: string, location: string): string {
  // In a comma-separated list, `scope=create,metrics` would otherwise be read as a token named "metrics".
  if (isScope(entry.toLowerCase())) {
    throw new Error(`${location} is a scope name, not a token: ${SCOPE_SYNTAX_HINT}`);
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

/** The maximum number of accepted tokens in the cache of a list. The least recently used are evicted first. */
const MAX_CACHED_TOKENS = 1000;

interface AcceptedToken extends Grant {
  /** Milliseconds since 1970. */
  readonly expires: number;
}

/** Accepts the tokens of an immutable list. */
export class TokenList {
  readonly size: number;
  private readonly byDigest: ReadonlyMap<string, AcceptedToken>;
  /** Keyed by the token itself, so that its digest is not computed on every request. */
  private readonly cache = new LruMap<AcceptedToken>(MAX_CACHED_TOKENS);

  constructor(tokens: readonly ListedToken[]) {
    this.size = tokens.length;
    this.byDigest = new Map(
      tokens.map(({ digest, location, name, expires = Infinity, scopes = allScopes }) => {
        const caller = name === undefined ? { name: location, tokenDigest: digest } : { name };
        const lacks = allScopes.filter((scope) => !scopes.includes(scope));
        return [
          digest,
          {
            caller,
            expires,
            missingScopes: Object.fromEntries(lacks.map((scope) => [scope, scope])),
          },
        ];
      }),
    );
  }

  /**
   * Looks up a token. Not constant-time: timing may reveal parts of a digest, but a digest does not reveal
   * the token.
   *
   * @returns undefined when the token is not listed
   * @throws InvalidTokenError when it has expired
   */
  verify(token: BearerToken): Grant | undefined {
    let found = this.cache.get(token.text);
    if (found === undefined) {
      found = this.byDigest.get(token.digest);
      if (found === undefined) return undefined;
      this.cache.set(token.text, found);
    }
    if (found.expires <= Date.now()) throw new InvalidTokenError('The token has expired.');
    return found;
  }
}
