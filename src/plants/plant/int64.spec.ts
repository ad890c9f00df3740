import fc from 'fast-check';
import { INT64_MAX, INT64_MIN, isInt64, parseInt64 } from './int64';

const JSON_NUMBER = /^-?(?:0|[1-9]\d{0,24})(?:\.\d{1,24})?(?:[eE][+-]?0{0,3}[1-6]?\d)?$/;

/** Converts a JSON number to a fraction of big integers, which is exact. */
function toFraction(literal: string): { numerator: bigint; denominator: bigint } {
  const [mantissa = '', exponent = '0'] = literal.split(/e/i);
  const [integer = '', fraction = ''] = mantissa.split('.');
  const scale = Number(exponent) - fraction.length;
  const numerator = BigInt(integer + fraction) * 10n ** BigInt(Math.max(scale, 0));
  return { numerator, denominator: 10n ** BigInt(Math.max(-scale, 0)) };
}

describe('parseInt64', () => {
  it('accepts a number if and only if its mathematical value is an int64', () => {
    fc.assert(
      fc.property(fc.stringMatching(JSON_NUMBER), (literal) => {
        const { numerator, denominator } = toFraction(literal);
        const value = numerator / denominator;
        const isInt64 =
          value * denominator === numerator && value >= INT64_MIN && value <= INT64_MAX;

        expect(parseInt64(literal)).toBe(isInt64 ? value : undefined);
      }),
      { numRuns: 5_000 },
    );
  });

  // prettier-ignore
  it.each([
    '', '-', '+1', '.5', '1.', '0x1', '1n', ' 1', '1e', 'NaN', 'Infinity',
    '-9223372036854775809', '9223372036854775808', '1e999999999',
  ])('returns undefined for %j', (literal) => {
    expect(parseInt64(literal)).toBeUndefined();
  });

  it.each([INT64_MIN, INT64_MAX])('parses the limit %d', (limit) => {
    expect(parseInt64(String(limit))).toBe(limit);
    expect(isInt64(limit)).toBe(true);
  });

  it.each([
    `1${'0'.repeat(1_000_000)}e-1000000`,
    `0.${'0'.repeat(999_999)}1e1000000`,
    `1.${'0'.repeat(1_000_000)}`,
  ])('parses a number with a million digits', (literal) => {
    expect(parseInt64(literal)).toBe(1n);
  });
});

it.each([1, '1', undefined])('isInt64 returns false for %j', (value) => {
  expect(isInt64(value)).toBe(false);
});
