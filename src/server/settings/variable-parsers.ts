import { isIP } from 'node:net';
import { pino } from 'pino';
import {
  formatListedToken,
  type ListedToken,
  parseTokenList,
} from '../../plants/auth/listed-token';

/** How the text of a variable is read. */
export interface Parser<T> {
  /** What the text must be, after "must be". */
  readonly expected: string;
  /**
   * Returns undefined when the text is not that.
   *
   * @throws Error with more than that to say. It must not show a secret
   */
  readonly parse: (text: string) => T | undefined;
}

/** Some text, which is judged together with other variables. */
export const anyText: Parser<string> = { expected: 'a text', parse: (text) => text };

export const audiences: Parser<readonly string[]> = {
  expected: 'audiences, separated by spaces and not by commas',
  parse: (text) => (text.includes(',') ? undefined : text.split(/\s+/)),
};

export const flag: Parser<boolean> = {
  expected: 'true or false',
  parse: (text) => ({ true: true, false: false })[text.toLowerCase()],
};

const LOG_LEVELS = [...Object.keys(pino.levels.values), 'silent'];

export const logLevel: Parser<string> = {
  expected: `one of ${LOG_LEVELS.join(', ')}`,
  parse: (text) => LOG_LEVELS.find((level) => level === text.toLowerCase()),
};

export const host: Parser<string> = {
  expected: 'a host name or an IP address',
  // An IPv6 address may have the brackets that it has in a URL.
  parse: (text) => /^[\w.:-]+$/.exec(text.replace(/^\[(.*:.*)\]$/, '$1'))?.[0],
};

const integer = (what: string, min: number, max: number): Parser<number> => ({
  expected: `${what} from ${min} to ${max}`,
  parse: (text) => {
    const number = /^\d{1,15}$/.test(text) ? Number(text) : NaN;
    return number >= min && number <= max ? number : undefined;
  },
});

export const port = integer('a port', 0, 65_535);
export const connections = integer('a number', 1, 1_000_000);

const DURATION_UNITS: Record<string, number> = { ms: 1, s: 1000, m: 60_000 };

/** @param shortest in milliseconds, as its value */
const durationFrom = (shortest: number, kind: string): Parser<number> => ({
  expected: `${kind}: seconds, or a number with the unit ms, s or m`,
  parse: (text) => {
    const [, number, unit = 's'] = /^(\d{1,9}(?:\.\d{1,3})?) ?(ms|s|m)?$/.exec(text) ?? [];
    const duration = Math.round(Number(number) * (DURATION_UNITS[unit] ?? NaN));
    // Node.js has no longer timers.
    return duration >= shortest && duration < 2 ** 31 ? duration : undefined;
  },
});

export const duration = durationFrom(1, 'a duration above zero');
export const durationOrZero = durationFrom(0, 'a duration');

const SIZE_UNITS: Record<string, number> = { '': 1, KiB: 2 ** 10, MiB: 2 ** 20 };

/** In bytes. */
export const size: Parser<number> = {
  expected: 'a size above zero and up to 256 MiB: bytes, or a number with the unit KiB or MiB',
  parse: (text) => {
    const [, number, unit = ''] = /^(\d{1,9}) ?(KiB|MiB)?$/.exec(text) ?? [];
    const bytes = Number(number) * (SIZE_UNITS[unit] ?? NaN);
    // A string of V8 has at most about 2^29 characters.
    return bytes > 0 && bytes <= 256 * 2 ** 20 ? bytes : undefined;
  },
};

/** In seconds. */
const WINDOWS: Record<string, number> = { s: 1, m: 60, h: 3600 };

export interface RateLimit {
  /** Requests that a caller may make within the window, which begins with the first of them. */
  readonly quota: number;
  /** Seconds. */
  readonly window: number;
}

export const rate: Parser<RateLimit> = {
  expected:
    'the number of requests that each caller may send per second, minute or hour, such as 100/s, 600/m or 5000/h',
  parse: (text) => {
    const [, number, unit = ''] = /^(\d{1,9}) ?\/ ?(s|m|h)$/.exec(text) ?? [];
    const quota = Number(number);
    return quota > 0 ? { quota, window: WINDOWS[unit] ?? NaN } : undefined;
  },
};

const list = (what: string, isValid: (member: string) => boolean): Parser<readonly string[]> => ({
  expected: `a list of ${what}, separated by commas or white space`,
  parse: (text) => {
    const members = membersOf(text);
    const invalid = members.find((member) => !isValid(member));
    if (invalid !== undefined) throw new Error(`"${invalid}" does not belong in a list of ${what}`);
    return members.length > 0 || text === '' ? members : undefined;
  },
});

function membersOf(text: string): string[] {
  return text.split(/[\s,]+/).filter((member) => member !== '');
}

export const ranges = list('IP addresses or ranges such as 10.0.0.0/8', (member) => {
  const [, address = '', bits = 1] = /^([^/]+)(?:\/([1-9]\d*))?$/.exec(member) ?? [];
  return isIP(address) > 0 && Number(bits) <= (isIP(address) === 4 ? 32 : 128);
});

/** As browsers write them: never "null", which is everybody's, nor a wildcard. */
export const origins = list(
  'origins such as https://app.example.org, without path, slash at the end and wildcards',
  (member) => /^https?:[^*]+$/.test(member) && URL.parse(member)?.origin === member,
);

/** The tokens as `sha256:HEX`, so that the settings hold no secret, with their scopes. */
export const tokens: Parser<readonly string[]> = {
  expected: 'a list of tokens',
  parse: (text) => {
    const listed = parseTokens(text);
    return listed.length > 0 ? listed.map(formatListedToken) : undefined;
  },
};

/** @throws Error when the list is invalid; the message never shows a token */
export function parseTokens(text: string): ListedToken[] {
  const entries: string[] = [];
  for (const member of membersOf(text)) {
    // A scope belongs to the token before it.
    const isScope = member.startsWith('scope=') && entries.length > 0;
    entries.push(isScope ? `${entries.pop()} ${member}` : member);
  }
  return parseTokenList(entries);
}
