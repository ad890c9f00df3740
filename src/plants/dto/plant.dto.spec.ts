import fc from 'fast-check';
import { InvalidPlantError } from '../errors/errors';
import type { Plant, PlantContent } from '../plant';
import { NewPlantDto } from './plant.dto';

/** The rules of the contract for strings: their maximum numbers of characters, of which it has none. */
const MAX_LENGTHS: Partial<Record<keyof PlantContent, number>> = {};

const anyValue = fc.oneof(
  fc.anything(),
  fc.bigInt(),
  fc.bigInt({ min: 2n ** 63n - 2n, max: 2n ** 63n + 2n }),
  fc.bigInt({ min: -(2n ** 63n) - 2n, max: -(2n ** 63n) + 2n }),
  fc.string({ unit: 'binary' }),
  fc.constantFrom(undefined, null, '', '\0', '\ud800', 'Fern\udc00', '🌿', 0, 1),
);
const validId = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
/** Strings around each limit, and strings so long that they exceed a limit that is missing above. */
const longText = fc
  .constantFrom(...[1000, ...Object.values(MAX_LENGTHS)].flatMap((max) => [max - 1, max, max + 1]))
  .map((length) => '🌿'.repeat(length));
const text = fc.oneof({ weight: 20, arbitrary: fc.string() }, { weight: 1, arbitrary: longText });
const properties = {
  id: fc.oneof(validId, anyValue),
  name: fc.oneof(text, anyValue),
  tag: fc.oneof(text, anyValue),
} satisfies Record<keyof Plant, unknown>;
const candidates = fc.record(
  { ...properties, other: fc.anything(), ['__proto__']: fc.anything() },
  { requiredKeys: [] },
);

/** Repeats the rule of the contract: a string without U+0000, without unpaired surrogates, and not too long. */
const isValidString = (value: unknown, maxLength = Infinity): boolean =>
  typeof value === 'string' &&
  Array.from(value).length <= maxLength &&
  !Array.from(value).some((character) => /^[\0\ud800-\udfff]$/.test(character));
const isInt64 = (value: unknown): boolean =>
  typeof value === 'bigint' && BigInt.asIntN(64, value) === value;

/** Creates a plant from a candidate, or returns the names of the invalid properties. */
function tryCreatePlant(candidate: unknown): unknown {
  try {
    return Object.assign({}, NewPlantDto.from(candidate));
  } catch (error) {
    if (!(error instanceof InvalidPlantError)) throw error;
    // The message has one part for each invalid property, which begins with its name.
    const reasons = error.message.slice('Not a NewPlant: '.length).split('; ');
    return reasons.map((reason) => reason.split(' ')[0]).toSorted();
  }
}

describe('NewPlantDto.from', () => {
  it('accepts exactly the candidates that the contract allows, and copies only their properties', () => {
    let valid = 0;
    fc.assert(
      fc.property(candidates, (candidate) => {
        const { id, name, tag } = candidate;
        const invalid = [
          ...(isInt64(id) ? [] : ['id']),
          ...(isValidString(name, MAX_LENGTHS.name) ? [] : ['name']),
          ...(tag === undefined || isValidString(tag, MAX_LENGTHS.tag) ? [] : ['tag']),
        ];
        const plant = { id, name, ...(tag !== undefined && { tag }) };
        if (invalid.length === 0) valid++;

        expect(tryCreatePlant(candidate)).toEqual(invalid.length > 0 ? invalid.toSorted() : plant);
      }),
      { numRuns: 5_000, verbose: true },
    );

    expect(valid).toBeGreaterThan(100);
  });

  it.each([null, undefined, 7, 'Fern', [{ id: 1n, name: 'Fern' }]])('rejects %j', (candidate) => {
    expect(() => NewPlantDto.from(candidate)).toThrow('it must be a JSON object');
  });

  it('returns an instance that cannot be changed', () => {
    const plant: { name: string } = NewPlantDto.from({ id: 1n, name: 'Fern' });

    expect(() => {
      plant.name = '\0';
    }).toThrow(TypeError);
  });

  it('reads each property once, so that an accessor cannot return two values', () => {
    let reads = 0;
    const candidate = {
      id: 1n,
      get name() {
        return reads++ === 0 ? 'Fern' : '\0';
      },
    };

    expect(NewPlantDto.from(candidate)).toEqual({ id: 1n, name: 'Fern' });
  });
});
