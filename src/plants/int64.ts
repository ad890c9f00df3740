/** The smallest int64, -2^63. */
export const INT64_MIN = -(2n ** 63n);
/** The largest int64, 2^63 - 1. */
export const INT64_MAX = 2n ** 63n - 1n;

/** The number grammar of RFC 8259 section 6, in parts: sign, integer, fraction, exponent. */
const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/** Every integer of so few digits is an int64; what callers send most. */
const SURELY_INT64 = /^-?\d{1,18}$/;

/** No int64 has more decimal digits. */
const MOST_DIGITS = 19;

/**
 * The int64 that a JSON number stands for, judged by its exact mathematical value and not by the
 * nearest double: `1.0`, `1E6` and `9007199254740993` are integers, `1.000000000000000005` is not.
 *
 * @param literal a number as written in JSON
 * @returns undefined when the value is no integer, or none that fits 64 bits
 */
export function parseInt64(literal: string): bigint | undefined {
  if (SURELY_INT64.test(literal)) return BigInt(literal);
  const [, sign = '', integer = '', fraction = '', exponent = '0'] = NUMBER.exec(literal) ?? [];

  // The value is digits × 10^scale, with no zero at either end of digits.
  const untrimmed = integer + fraction;
  const digits = withoutOuterZeros(untrimmed);
  if (digits.text === '') return integer === '' ? undefined : 0n;
  const scale = Number(exponent) - fraction.length + digits.zerosAfter;

  // The length is judged first: nobody shall make us write out 10^400.
  if (scale < 0 || digits.text.length + scale > MOST_DIGITS) return undefined;
  const value = BigInt(sign + digits.text + '0'.repeat(scale));
  return value >= INT64_MIN && value <= INT64_MAX ? value : undefined;
}

/** Loops, because a regular expression for the trailing zeros takes quadratic time. */
function withoutOuterZeros(digits: string): { text: string; zerosAfter: number } {
  let start = 0;
  let end = digits.length;
  while (start < end && digits[start] === '0') start++;
  while (end > start && digits[end - 1] === '0') end--;
  return { text: digits.slice(start, end), zerosAfter: digits.length - end };
}
