import fc from 'fast-check';
import { parseInt64 } from './int64';
import { parseJson, findPropertySource } from './json';

const name = fc.constantFrom('id', '\\u0069d', 'i', '', '\\\\', 'id\\"', '{', ':', ',');
const anyName = fc.oneof(
  name,
  fc.string().map((string) => JSON.stringify(string).slice(1, -1)),
);
const space = fc.constantFrom('', ' ', '\n\t');
const number = fc.constantFrom('0', '-1.50', '1e5', '9007199254740993');
const value = fc.oneof(
  number,
  fc.json(),
  fc.constantFrom('{"id":7}', '[{"id":8},"id"]', '"\\\\\\""', '{"a":{"id":[9,{}]}}', '[]', '{}'),
);

/** The sources of properties with any names, including escaped and repeated names. */
const properties = fc.array(
  fc.tuple(space, anyName, space, value).map(([s, n, t, v]) => `${s}"${n}"${t}:${s}${v}${t}`),
  { maxLength: 8 },
);

describe('findPropertySource', () => {
  it('finds the property that JSON.parse uses', () => {
    fc.assert(
      fc.property(properties, (sources) => {
        const json = `{${sources.join(',')}}`;
        const { id } = JSON.parse(json) as { id?: unknown };

        const source = findPropertySource(json, 'id');

        expect(source === undefined ? undefined : JSON.parse(source)).toEqual(id);
      }),
      { numRuns: 3_000, verbose: true },
    );
  });

  it('returns a number as it was written, whatever precedes it', () => {
    fc.assert(
      fc.property(properties, number, space, (sources, literal, around) => {
        const last = `"\\u0069d"${around}:${around}${literal}${around}`;

        expect(findPropertySource(`{${[...sources, last].join(',')}}`, 'id')).toBe(literal);
      }),
      { numRuns: 2_000, verbose: true },
    );
  });
});

describe('parseJson', () => {
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

  it('rejects a byte order mark', () => {
    expect(() => parseJson('\uFEFF{}')).toThrow('Not JSON: ');
  });
});
