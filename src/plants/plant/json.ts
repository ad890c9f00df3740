import { NotJsonError } from '../errors/errors';
import { parseInt64 } from './int64';

/**
 * Matches a text that may contain a number that `JSON.parse` rounds (with a fraction, an exponent, or more than 15
 * digits), or a nested value, which begins after the first character. The reviver takes four times as long, so that
 * other texts are parsed without it.
 */
const NEEDS_REVIVER = /\d(?:[.eE]|\d{15})|.[[{]/s;

/** Restores the `id` of a nested object too: nobody reads it. TypeScript does not declare `source`, a number's text. */
function reviveId(key: string, value: unknown, { source = '' }: { source?: string } = {}): unknown {
  return key === 'id' && typeof value === 'number' ? (parseInt64(source) ?? value) : value;
}

/**
 * Parses JSON. An `id` that is a number whose exact value is an int64 becomes a bigint, because `JSON.parse` rounds
 * numbers to doubles. If a property occurs twice, the last one is used.
 * @throws NotJsonError when the text is not JSON, or is nested too deeply
 */
export function parseJson(text: string): unknown {
  try {
    if (NEEDS_REVIVER.test(text)) return JSON.parse(text, reviveId);
    const value = JSON.parse(text) as { id?: unknown } | null;
    if (typeof value?.id === 'number') value.id = BigInt(value.id);
    return value;
  } catch (error) {
    throw toNotJsonError(error, text);
  }
}

/** Explains in a sentence for the client why `JSON.parse` rejected a text. */
export function toNotJsonError(error: unknown, text: string): NotJsonError {
  if (error instanceof RangeError) return new NotJsonError('Not JSON: it is nested too deeply.');
  if (text.startsWith('\ufeff')) {
    return new NotJsonError('Not JSON: it begins with a byte order mark.');
  }
  // The message may quote characters of the body. Only those of printable ASCII stay.
  const reason = (error as Error).message.replaceAll(/[^ -~]/g, '?');
  return new NotJsonError(`Not JSON: ${reason}`);
}
