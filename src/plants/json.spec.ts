import fc from 'fast-check';
import { parseInt64 } from './int64';
import { parseJson } from './json';

const name = fc.constantFrom('id', '\\u0069d', 'i', '', '\\\\', 'id\\"', '{', ':', '__proto__');
const space = fc.constantFrom('', ' ', '\n\t');
const number = fc.constantFrom('0', '-1.50', '1e5', '9007199254740993', '1.5', '1E400', '-0');
const value = fc.oneof(
  number,
  fc.json(),
  fc.constantFrom('{"id":7}', '[{"id":8},"id"]', '"\\\\\\""', '{"a":{"id":[9,{}]}}', 'null'),
);

/** The sources of properties, including escaped and repeated names. */
const properties = fc.array(
  fc.tuple(space, name, space, value).map(([s, n, t, v]) => `${s}"${n}"${t}:${s}${v}${t}`),
  { maxLength: 8 },
);

describe('parseJson', () => {
  it('uses the exact value of the last id, whatever is next to it, or in it', () => {
    fc.assert(
      fc.property(properties, number, properties, (before, literal, after) => {
        const others = after.filter((source) => !/^\s*"(?:id|\\u0069d)"/.test(source));
        const text = `{${[...before, `"\\u0069d":${literal}`, ...others].join(',')}}`;

        const { id } = parseJson(text) as { id?: unknown };

        expect(id).toBe(parseInt64(literal) ?? Number(literal));
      }),
      { numRuns: 3_000, verbose: true },
    );
  });

  it.each(['1', '-0', '1E3', '9007199254740993', '9223372036854775807', '10.0e-1'])(
    'keeps every digit of the id %s',
    (literal) => {
      expect(parseJson(`{"id":${literal}}`)).toEqual({ id: parseInt64(literal) });
    },
  );

  it.each(['1E-999', '0.5', '1E400', '1.0000000000000001', '9007199254740991.5', '"1"', 'null'])(
    'returns the id %s as JSON.parse does',
    (literal) => {
      const text = `{"id":${literal}}`;

      expect(parseJson(text)).toEqual(JSON.parse(text));
    },
  );

  it.each([
    ['begins with a byte order mark', '\uFEFF{}'],
    ['is nested too deeply', `{"x":${'['.repeat(3e4)}${']'.repeat(3e4)}}`],
  ])('says that a text %s', (reason, text) => {
    expect(() => parseJson(text)).toThrow(`Not JSON: it ${reason}.`);
  });
});
