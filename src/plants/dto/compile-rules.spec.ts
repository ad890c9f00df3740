import type { Type } from '@nestjs/common';
import {
  Allow,
  IsDefined,
  IsInt,
  IsOptional,
  IsString,
  MaxLength,
  Validate,
  ValidateBy,
  ValidateIf,
  ValidateNested,
  ValidatorConstraint,
  validateSync,
} from 'class-validator';
import fc from 'fast-check';
import { compileRules } from './compile-rules';
import { NewPlantDto } from './plant.dto';

class ShortPlant extends NewPlantDto {
  @MaxLength(3)
  declare readonly name: string;

  @IsOptional()
  @IsInt()
  readonly height?: number;

  @ValidateIf((plant: ShortPlant) => plant.height === 1)
  @IsDefined()
  @IsString({ validateIf: (_, value) => value !== 0 })
  readonly note?: unknown;

  @Allow()
  readonly other?: unknown;
}

const anyValue = fc.oneof(
  fc.anything(),
  fc.bigInt(),
  fc.bigInt({ min: 2n ** 63n - 2n, max: 2n ** 63n + 2n }),
  fc.bigInt({ min: -(2n ** 63n) - 2n, max: -(2n ** 63n) + 2n }),
  fc.string({ unit: 'binary' }),
  fc.constantFrom(undefined, null, '', '\0', '\ud800', 'Fern\udc00', '🌿', 0, 1),
);
const validId = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const candidates = fc.record({
  id: fc.oneof(validId, anyValue),
  name: fc.oneof(fc.string(), fc.string({ maxLength: 3 }), anyValue),
  tag: fc.oneof(fc.constant(undefined), fc.string(), anyValue),
  height: fc.oneof(fc.constant(undefined), fc.integer({ min: 0, max: 2 }), anyValue),
  note: fc.oneof(fc.string(), anyValue),
});

describe('the compiled rules of a class', () => {
  it.each<Type<object>>([NewPlantDto, ShortPlant])(
    '%p give the verdict of class-validator on every candidate',
    (type) => {
      const keepsRules = compileRules(type);
      let valid = 0;

      fc.assert(
        fc.property(candidates, (members) => {
          const expected = validateSync(Object.assign(new type(), members)).length === 0;
          if (expected) valid++;

          expect(keepsRules(members)).toBe(expected);
        }),
        { numRuns: 5_000, verbose: true },
      );

      expect(valid).toBeGreaterThan(100);
    },
  );

  @ValidatorConstraint({ name: 'isKnown', async: true })
  class IsKnown {
    validate(): Promise<boolean> {
      return Promise.resolve(true);
    }
  }
  it.each<[string, PropertyDecorator]>([
    ['isKnown', Validate(IsKnown)],
    ['nestedValidation', ValidateNested()],
    ['isString', IsString({ each: true })],
  ])('cannot be made of the decorator "%s"', (name, decorator) => {
    class Plant {
      readonly name?: unknown;
    }
    decorator(Plant.prototype, 'name');

    expect(() => compileRules(Plant)).toThrow(
      `Plant.name: the decorator "${name}" cannot be compiled.`,
    );
  });

  it('refuse a decorator that turns out to be asynchronous', () => {
    class Plant {
      @ValidateBy({ name: 'isLate', validator: { validate: () => Promise.resolve(true) } })
      readonly name?: unknown;
    }

    expect(() => compileRules(Plant)({})).toThrow('"isLate" cannot be compiled');
  });
});
