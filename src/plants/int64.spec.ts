import fc from 'fast-check';
import { INT64_MAX, INT64_MIN, isInt64, parseInt64 } from './int64';

/** A JSON number of any shape, with its exact value as a fraction of big integers. */
const jsonNumber = fc
  .record({
    negative: fc.boolean(),
    integer: fc.oneof(fc.constant('0'), fc.stringMatching(/^[1-9]\d{0,24}$/)),
    fraction: fc.option(fc.stringMatching(/^\d{1,24}$/), { nil: '' }),
    e: fc.constantFrom('e', 'E'),
    exponent: fc.option(fc.integer({ min: -60, max: 60 }), { nil: undefined }),
    plus: fc.boolean(),
    zeros: fc.nat({ max: 3 }),
  })
  .map(({ negative, integer, fraction, e, exponent, plus, zeros }) => {
    const sign = exponent !== undefined && exponent < 0 ? '-' : plus ? '+' : '';
    const digits = '0'.repeat(zeros) + String(Math.abs(exponent ?? 0));
    const literal =
      (negative ? '-' : '') +
      integer +
      (fraction === '' ? '' : `.${fraction}`) +
      (exponent === undefined ? '' : e + sign + digits);
    const scale = (exponent ?? 0) - fraction.length;
    return {
      literal,
      numerator:
        BigInt(integer + fraction) * (negative ? -1n : 1n) * 10n ** BigInt(Math.max(scale, 0)),
      denominator: 10n ** BigInt(Math.max(-scale, 0)),
    };
  });

describe('parseInt64', () => {
  it('accepts a number exactly when its mathematical value is an int64', () => {
    fc.assert(
      fc.property(jsonNumber, ({ literal, numerator, denominator }) => {
        const value = numerator / denominator;
        const isInt64 =
          value * denominator === numerator && value >= INT64_MIN && value <= INT64_MAX;

        expect(parseInt64(literal)).toBe(isInt64 ? value : undefined);
      }),
      { numRuns: 5_000, verbose: true },
    );
  });

  it('reads every int64 as it is written', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: INT64_MIN, max: INT64_MAX }), (value) => {
        expect(parseInt64(String(value))).toBe(value);
      }),
      { numRuns: 5_000, verbose: true },
    );
  });

  it.each([
    ...['', '-', '+1', '.5', '1.', '0x1', '1n', ' 1', '1e', 'NaN', 'Infinity'],
    ...['-9223372036854775809', '9223372036854775808', '1e999999999'],
  ])('has nothing for %j', (literal) => {
    expect(parseInt64(literal)).toBeUndefined();
  });

  it.each([INT64_MIN, INT64_MAX])('reads %d, a limit', (limit) => {
    expect(parseInt64(String(limit))).toBe(limit);
    expect(isInt64(limit)).toBe(true);
  });

  it.each([1, '1', undefined])('is not needed to see that %j is none', (value) => {
    expect(isInt64(value)).toBe(false);
  });

  it.each([
    `1${'0'.repeat(1_000_000)}e-1000000`,
    `0.${'0'.repeat(999_999)}1e1000000`,
    `1.${'0'.repeat(1_000_000)}`,
  ])('reads a million digits', (literal) => {
    expect(parseInt64(literal)).toBe(1n);
  });
});
