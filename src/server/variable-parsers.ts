import { isIP } from 'node:net';
import { formatListedToken, parseTokenList } from '../plants/program';
import type { RateLimitOptions } from './rate-limit.guard';

/** Makes the value of a variable of its text; undefined when the text is invalid. */
export type Parse<T> = (text: string) => T | undefined;

export const parseIntegerBetween =
  (min: number, max: number): Parse<number> =>
  (text) => {
    const number = /^\d{1,15}$/.test(text) ? Number(text) : NaN;
    return number >= min && number <= max ? number : undefined;
  };

/** An IPv6 address may have the brackets that it has in a URL. */
export function parseHost(text: string): string | undefined {
  const host = text.replace(/^\[(.*:.*)\]$/, '$1');
  return /^[\w.:-]+$/.test(host) ? host : undefined;
}

const DURATION_UNITS: Record<string, number> = { ms: 1, s: 1000, m: 60_000 };

/** @param shortest in milliseconds */
export const parseDuration =
  (shortest: number): Parse<number> =>
  (text) => {
    const [, number, unit = 's'] = /^(\d{1,9}(?:\.\d{1,3})?) ?(ms|s|m)?$/.exec(text) ?? [];
    const duration = Math.round(Number(number) * (DURATION_UNITS[unit] ?? NaN));
    // Node.js has no longer timers.
    return duration >= shortest && duration < 2 ** 31 ? duration : undefined;
  };

const SIZE_UNITS: Record<string, number> = { '': 1, KiB: 2 ** 10, MiB: 2 ** 20 };

export function parseSize(text: string): number | undefined {
  const [, number, unit = ''] = /^(\d{1,9}) ?(KiB|MiB)?$/.exec(text) ?? [];
  const size = Number(number) * (SIZE_UNITS[unit] ?? NaN);
  // A string of V8 has at most about 2^29 characters.
  return size > 0 && size <= 256 * 2 ** 20 ? size : undefined;
}

/** In seconds. */
const WINDOWS: Record<string, number> = { s: 1, m: 60, h: 3600 };

export function parseRate(text: string): RateLimitOptions | undefined {
  const [, number, unit = ''] = /^(\d{1,9}) ?\/ ?(s|m|h)$/.exec(text) ?? [];
  const quota = Number(number);
  return quota > 0 ? { quota, window: WINDOWS[unit] ?? NaN } : undefined;
}

/** The members of a list that commas or white space separate; undefined if there is none, or an invalid one. */
export const parseList =
  (isValid: (member: string) => boolean): Parse<string[]> =>
  (text) => {
    const members = listOf(text);
    return members.length > 0 && members.every(isValid) ? members : undefined;
  };

function listOf(text: string): string[] {
  return text.split(/[\s,]+/).filter((member) => member !== '');
}

/** Whether a text is an IP address, or a range of them such as `10.0.0.0/8`. */
export function isRange(text: string): boolean {
  const [, address = '', bits = 1] = /^([^/]+)(?:\/([1-9]\d*))?$/.exec(text) ?? [];
  return isIP(address) > 0 && Number(bits) <= (isIP(address) === 4 ? 32 : 128);
}

/** Whether a text is an origin as browsers write it: never "null", which is everybody's, nor a wildcard. */
export function isOrigin(text: string): boolean {
  return /^https?:[^*]+$/.test(text) && URL.parse(text)?.origin === text;
}

/** Names the first member of a list that would be an origin without the slash at its end. */
export function describeSlash(text: string): string {
  const member = listOf(text).find((each) => each.endsWith('/') && isOrigin(each.slice(0, -1)));
  return member === undefined ? '' : `; "${member}" ends with a slash`;
}

export function parseFlag(text: string): boolean | undefined {
  return { true: true, false: false }[text.toLowerCase()];
}

/**
 * Returns the tokens as `sha256:HEX`, so that the settings hold no secret, with their scopes.
 *
 * @throws Error saying what is wrong
 */
export function parseTokens(text: string | undefined): string[] {
  if (text === undefined) return [];
  const entries: string[] = [];
  for (const field of listOf(text)) {
    // A scope belongs to the token before it.
    if (field.startsWith('scope=') && entries.length > 0) entries.push(`${entries.pop()} ${field}`);
    else entries.push(field);
  }
  if (entries.length === 0) throw new Error('it has no token');
  return parseTokenList(entries).map(formatListedToken);
}
