/** The smallest signed integer of 64 bits. */
export const INT64_MIN = -(2n ** 63n);

/** The largest signed integer of 64 bits. */
export const INT64_MAX = 2n ** 63n - 1n;

/** The number grammar of RFC 8259 section 6, in parts: integer, fraction, exponent. */
const NUMBER = /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/** An integer of at most 18 digits, which fits 64 bits. */
const SHORT_INTEGER = /^-?\d{1,18}$/;

/** Whether a value is a bigint that fits 64 bits. A number never does, whatever its value. */
export function isInt64(value: unknown): value is bigint {
  return typeof value === 'bigint' && value >= INT64_MIN && value <= INT64_MAX;
}

/**
 * Reads a JSON number as an int64, by its exact value and not by the nearest double: `1.0`, `1E6` and
 * `9007199254740993` are integers, `1.000000000000000005` is not.
 * @param literal a number as written in JSON
 * @returns undefined when the value is not an integer or does not fit 64 bits
 */
export function parseInt64(literal: string): bigint | undefined {
  if (SHORT_INTEGER.test(literal)) return BigInt(literal);
  const [, integer = '', fraction = '', exponent = ''] = NUMBER.exec(literal) ?? [];
  // The value is digits × 10^scale, with no zero at either end of digits.
  const digits = withoutOuterZeros(integer + fraction);
  if (digits.text === '') return integer === '' ? undefined : 0n;
  // Without an exponent, this adds Number(''), which is 0.
  const scale = Number(exponent) - fraction.length + digits.zerosAfter;
  // An int64 has at most 19 digits. This check keeps a client from making us write out 10^400.
  if (scale < 0 || digits.text.length + scale > 19) return undefined;
  const magnitude = BigInt(digits.text + '0'.repeat(scale));
  const value = literal.startsWith('-') ? -magnitude : magnitude;
  return isInt64(value) ? value : undefined;
}

/** Uses loops, because a regular expression for trailing zeros takes quadratic time. */
function withoutOuterZeros(digits: string): { text: string; zerosAfter: number } {
  let start = 0;
  let end = digits.length;
  while (digits[start] === '0') start++;
  while (digits[end - 1] === '0') end--;
  return { text: digits.slice(start, end), zerosAfter: digits.length - end };
}
