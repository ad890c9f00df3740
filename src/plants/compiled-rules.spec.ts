import { ValidateNested, validateSync } from 'class-validator';
import fc from 'fast-check';
import { compileRules } from './compiled-rules';
import { NewPlantDto } from './dto/new-plant.dto';

const anyValue = fc.oneof(
  fc.anything(),
  fc.bigInt(),
  fc.bigInt({ min: 2n ** 63n - 2n, max: 2n ** 63n + 2n }),
  fc.bigInt({ min: -(2n ** 63n) - 2n, max: -(2n ** 63n) + 2n }),
  fc.string({ unit: 'binary' }),
  fc.constantFrom(undefined, null, '', '\0', '\ud800', 'Fern\udc00', '🌿'),
);
const goodId = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const candidate = fc.record({
  id: fc.oneof(goodId, anyValue),
  name: fc.oneof(fc.string(), anyValue),
  tag: fc.oneof(fc.constant(undefined), fc.string(), anyValue),
});

describe('compileRules', () => {
  it('agrees with class-validator on every candidate', () => {
    const keepsTheRules = compileRules(NewPlantDto);
    let kept = 0;

    fc.assert(
      fc.property(candidate, (members) => {
        const plant = Object.assign(new NewPlantDto(), members);
        const faults = validateSync(plant);
        if (faults.length === 0) kept++;

        expect(keepsTheRules(plant)).toBe(faults.length === 0);
      }),
      { numRuns: 20_000, verbose: true },
    );

    expect(kept).toBeGreaterThan(1000);
  });

  it('refuses a class with a decorator that it does not know', () => {
    class Bed {
      @ValidateNested()
      plant!: NewPlantDto;
    }

    expect(() => compileRules(Bed)).toThrow('Bed.plant has a decorator that cannot be compiled');
  });
});
