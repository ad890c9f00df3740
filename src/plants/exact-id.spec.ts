import fc from 'fast-check';
import { exactId } from './exact-id';
import { parseInt64 } from './int64';

describe('exactId', () => {
  it('is what parseInt64 makes of a number as it is written, however short', () => {
    const number = fc.stringMatching(/^-?(0|[1-9]\d{0,17})(\.\d{1,14})?([eE][+-]?\d{1,3})?$/);

    fc.assert(
      fc.property(number, (literal) => {
        const json = `{"id":${literal}}`;
        const { id } = JSON.parse(json) as { id: number };

        expect(exactId(id, json)).toBe(parseInt64(literal) ?? id);
      }),
      { numRuns: 5_000, verbose: true },
    );
  });

  it.each(['1E-999', '-0.1e-400', '0.5', '1E400', '1.0000000000000001', '9007199254740991.5'])(
    'leaves %s a number',
    (literal) => {
      expect(exactId(JSON.parse(literal) as number, `{"id":${literal}}`)).toBe(JSON.parse(literal));
    },
  );
});
