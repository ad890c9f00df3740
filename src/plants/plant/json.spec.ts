import fc from 'fast-check';
import { parseInt64 } from './int64';
import { parseJson } from './json';

const name = fc.constantFrom('id', '\\u0069d', 'i', '', '\\\\', 'id\\"', '{', ':', '__proto__');
const space = fc.constantFrom('', ' ', '\n\t');
// prettier-ignore
const number = fc.constantFrom(
  '0', '-0', '-12', '123456789012345', '-1.50', '1e5', '10.0e-1', '9007199254740993', '9223372036854775807', '1.5', '1E400',
  '1E-999', '1.0000000000000001', '9007199254740991.5',
);
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
      fc.property(properties, fc.oneof(number, value), properties, (before, literal, after) => {
        const others = after.filter((source) => !/^\s*"(?:id|\\u0069d)"/.test(source));
        const text = `{${[...before, `"\\u0069d":${literal}`, ...others].join(',')}}`;

        const { id } = parseJson(text) as { id?: unknown };

        expect(id).toEqual(parseInt64(literal) ?? parseJson(literal));
      }),
      { numRuns: 3_000 },
    );
  });

  it.each([
    ['begins with a byte order mark', '\uFEFF{}'],
    ['is nested too deeply', `{"x":${'['.repeat(3e4)}${']'.repeat(3e4)}}`],
  ])('says that a text %s', (reason, text) => {
    expect(() => parseJson(text)).toThrow(`Not JSON: it ${reason}.`);
  });
});
