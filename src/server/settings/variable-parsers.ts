import { isIP } from 'node:net';
import { pino } from 'pino';

/** Parses what an operator has written. The text is empty only if it is the default of a variable. */
export interface Parser<T> {
  /** The expected text, as it follows "must be" in a message. */
  readonly expected: string;
  /** Returns undefined if the text is invalid. */
  readonly parse: (text: string) => T | undefined;
  /** Returns a sentence about an invalid text, if there is more to say than what is expected. */
  readonly explain?: (text: string) => string | undefined;
}

/** Any text. What uses it validates it. */
export const anyString: Parser<string> = { expected: 'a string', parse: (text) => text };

/** A switch, in upper or lower case. */
export const flag: Parser<boolean> = {
  expected: 'true or false',
  parse: (text) => (/^(?:true|false)$/i.test(text) ? text.toLowerCase() === 'true' : undefined),
};

const LOG_LEVELS = [...Object.keys(pino.levels.values), 'silent'];

/** A level of pino, in upper or lower case. `silent` turns the log off. */
export const logLevel: Parser<string> = {
  expected: `one of ${LOG_LEVELS.join(', ')}`,
  parse: (text) => LOG_LEVELS.find((level) => level === text.toLowerCase()),
};

/** What to listen on. A name is resolved when the service starts to listen. */
export const host: Parser<string> = {
  expected: 'a host name or an IP address',
  parse: (text) => {
    // An IPv6 address, which has a colon, may be in brackets, as in a URL.
    const address = text.replace(/^\[(.*:.*)\]$/, '$1');
    const isNameOrAddress = /^[\w.:-]+$/.test(address);
    return isNameOrAddress ? address : undefined;
  },
};

const integer = (what: string, min: number, max: number): Parser<number> => ({
  expected: `${what} from ${min} to ${max}`,
  parse: (text) => {
    if (!/^\d{1,15}$/.test(text)) return undefined;
    const number = Number(text);
    return number >= min && number <= max ? number : undefined;
  },
});

/** A port. 0 means one that is free. */
export const port = integer('a port', 0, 65_535);
/** A maximum number of open connections. */
export const connections = integer('a number', 1, 1_000_000);

/** Parses a number and its unit, which may be left out if `units` has the empty one. */
const quantity = (
  expected: string,
  units: Readonly<Record<string, number>>,
  isValid: (value: number) => boolean,
): Parser<number> => ({
  expected,
  parse: (text) => {
    // A number with up to three decimals, optionally a space, and the unit.
    const [, number, unit = ''] = /^(\d{1,9}(?:\.\d{1,3})?) ?([A-Za-z]*)$/.exec(text) ?? [];
    const factor = units[unit];
    if (number === undefined || factor === undefined) return undefined;
    const value = Math.round(Number(number) * factor);
    return isValid(value) ? value : undefined;
  },
});

const DURATION_UNITS = { '': 1000, ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

const durationFrom = (minMs: number, maxDays: number): Parser<number> =>
  quantity(
    `a duration${minMs > 0 ? ' above zero and' : ''} up to ${maxDays} days: seconds, or a number with the unit ms, s, m, h or d`,
    DURATION_UNITS,
    (value) => value >= minMs && value <= maxDays * DURATION_UNITS.d,
  );

/** A duration in milliseconds. Timers of Node.js cannot be longer than 2^31 ms. */
export const duration = durationFrom(1, 24);
/** The same, or 0. */
export const durationOrZero = durationFrom(0, 24);
/** How long a token is valid, in milliseconds. */
export const lifetime = durationFrom(1, 36_500);

/** Parses a size in bytes. A string in V8 can have at most about 2^29 characters. */
export const size = quantity(
  'a size above zero and up to 256 MiB: bytes, or a number with the unit KiB or MiB',
  { '': 1, KiB: 2 ** 10, MiB: 2 ** 20 },
  (value) => value > 0 && value <= 256 * 2 ** 20,
);

const WINDOW_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600 };

/** A caller may send `quota` requests in `window` seconds, which begin with the first of them. */
export type RateLimit = Readonly<Record<'quota' | 'window', number>>;

/** How many requests a caller may send. */
export const rate: Parser<RateLimit> = {
  expected:
    'the number of requests that each caller may send per second, minute or hour, such as 100/s, 600/m or 5000/h',
  parse: (text) => {
    // A number, a slash, and a unit, optionally with a space around the slash.
    const [, number = '0', unit = ''] = /^(\d{1,9}) ?\/ ?([a-z])$/.exec(text) ?? [];
    const quota = Number(number);
    const window = WINDOW_SECONDS[unit];
    return quota > 0 && window !== undefined ? { quota, window } : undefined;
  },
};

/** Splits a list. Separators at the ends do not count. */
const splitList = (text: string): string[] => text.split(/[\s,]+/).filter((item) => item !== '');

const list = (what: string, isValid = (_item: string) => true): Parser<readonly string[]> => ({
  expected: `a list of ${what}, separated by commas or white space`,
  parse: (text) => {
    const items = splitList(text);
    // Only as a default, an empty text is an empty list.
    return items.every(isValid) && (items.length > 0 || text === '') ? items : undefined;
  },
});

/** Audiences, as claims of tokens name them. */
export const audiences = list('audiences');
/** Issuers, as claims of tokens name them. */
export const issuers = list('issuers');

/** Parses tokens and their scopes. A scope such as `scope=create` belongs to the token before it. */
export const tokens: Parser<readonly string[]> = {
  expected: 'a list of tokens, each with its scopes behind it, separated by commas or white space',
  parse: (text) => {
    const entries: string[] = [];
    for (const item of splitList(text)) {
      const token = item.startsWith('scope=') ? entries.pop() : undefined;
      entries.push(token === undefined ? item : `${token} ${item}`);
    }
    return entries.length > 0 ? entries : undefined;
  },
};

/** IP addresses and ranges of them. */
export const ranges = list(
  'IP addresses, or ranges such as 10.0.0.0/8 with a prefix of at least 1',
  (item) => {
    // An address, and after a slash the number of its bits that count: not 0, which would mean every address.
    const [, address = '', bits = 1] = /^([^/]+)(?:\/([1-9]\d*))?$/.exec(item) ?? [];
    return isIP(address) > 0 && Number(bits) <= (isIP(address) === 4 ? 32 : 128);
  },
);

/**
 * The origin of a page in an app, such as `tauri://localhost`: a scheme of its own, none of those that the URL standard
 * calls special, and a host.
 */
const APP_ORIGIN = /^(?!(?:https?|wss?|ftp|file):)[a-z][a-z0-9+.-]*:\/\/[^/?#*\s]+$/;

/** Parses origins as browsers send them: not "null", which any sandboxed page sends, and no wildcards. */
export const origins: Parser<readonly string[]> = {
  ...list(
    'origins such as https://app.example.org or tauri://localhost, without a path, a trailing slash or wildcards',
    isOrigin,
  ),
  explain: (text) => {
    const written = splitList(text).find((item) => !isOrigin(item));
    const sent = written === undefined ? undefined : URL.parse(written)?.origin;
    if (sent === undefined || !isOrigin(sent)) return undefined;
    return `For ${written}, a browser sends ${sent}.`;
  },
};

function isOrigin(text: string): boolean {
  if (text.includes('*')) return false;
  return APP_ORIGIN.test(text) || (/^https?:/.test(text) && URL.parse(text)?.origin === text);
}
