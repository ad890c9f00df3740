import fc from 'fast-check';
import { InvalidPlantError } from '../errors/errors';
import { CONTENT_PROPERTIES } from './plant';
import { NewPlantDto } from './plant.dto';
import { EDGES, MAX_LENGTHS, RULES } from '../../../test/support/plant-rules';

const anyValue = fc.oneof(fc.string({ unit: 'binary' }), fc.bigInt(), fc.anything());

/** Returns the plant, or the names of the invalid properties. */
function tryCreatePlant(candidate: unknown): unknown {
  try {
    return Object.assign({}, NewPlantDto.from(candidate));
  } catch (error) {
    if (!(error instanceof InvalidPlantError)) throw error;
    // The message has one part for each invalid property, which begins with its name.
    const reasons = error.message.slice('Not a NewPlant: '.length).split('; ');
    return reasons.map((reason) => reason.split(' ')[0]);
  }
}

describe('NewPlantDto.from', () => {
  it.each(Object.entries(RULES))(
    'accepts exactly the values of %s that the contract allows, and copies only its properties',
    (property, isValid) => {
      const check = fc.property(anyValue, (value) => {
        const plant = { id: 1n, name: 'Fern', [property]: value };

        const expected = isValid(value) ? plant : [property];
        expect(tryCreatePlant({ ...plant, other: value })).toEqual(expected);
      });

      fc.assert(check, { numRuns: 100, examples: EDGES.map((edge) => [edge]) });
    },
  );

  const lengths = [40, 255, 1000, 60_000].concat(Object.values(MAX_LENGTHS));
  it.each(lengths.flatMap((length) => [length, length + 1]))(
    'accepts %d characters if and only if the contract allows as many',
    (length) => {
      for (const property of CONTENT_PROPERTIES) {
        const plant = { id: 1n, name: 'Fern', [property]: '🌿'.repeat(length) };

        const isAccepted = !Array.isArray(tryCreatePlant(plant));
        expect([property, isAccepted]).toEqual([property, RULES[property](plant[property])]);
      }
    },
  );

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
