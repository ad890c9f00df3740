import { validateSync } from 'class-validator';
import fc from 'fast-check';
import { NewPlantDto } from './dto/plant.dto';
import { isNewPlant } from './new-plant';

const anyValue = fc.oneof(
  fc.anything(),
  fc.bigInt(),
  fc.bigInt({ min: 2n ** 63n - 2n, max: 2n ** 63n + 2n }),
  fc.bigInt({ min: -(2n ** 63n) - 2n, max: -(2n ** 63n) + 2n }),
  fc.string({ unit: 'binary' }),
  fc.constantFrom(undefined, null, '', '\0', '\ud800', 'Fern\udc00', '🌿'),
);
const validId = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const candidate = fc.record({
  id: fc.oneof(validId, anyValue),
  name: fc.oneof(fc.string(), anyValue),
  tag: fc.oneof(fc.constant(undefined), fc.string(), anyValue),
});

it('isNewPlant agrees with class-validator on every candidate', () => {
  let valid = 0;

  fc.assert(
    fc.property(candidate, (members) => {
      const faults = validateSync(Object.assign(new NewPlantDto(), members));
      if (faults.length === 0) valid++;

      expect(isNewPlant(members)).toBe(faults.length === 0);
    }),
    { numRuns: 5_000, verbose: true },
  );

  expect(valid).toBeGreaterThan(1000);
});
