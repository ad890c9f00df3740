import {
  Allow,
  IsPositive,
  MaxLength,
  Validate,
  ValidateBy,
  ValidateNested,
  ValidatorConstraint,
} from 'class-validator';
import { assertRulesApply } from './assert-rules-apply';
import { NewPlantDto } from './plant.dto';

const example = { id: 1n, name: 'Fern' };

/** Creates a subclass of NewPlantDto with one more decorator. */
function createPlantClass(property: 'id' | 'name', decorator: PropertyDecorator): NewableFunction {
  // The constructor of NewPlantDto is private.
  class Plant extends (NewPlantDto as unknown as new () => object) {}
  decorator(Plant.prototype, property);
  return Plant;
}

describe('assertRulesApply', () => {
  @ValidatorConstraint({ name: 'isKnown', async: true })
  class IsKnown {
    validate(): Promise<boolean> {
      return Promise.resolve(true);
    }
  }
  const isSlow = ValidateBy({
    name: 'isSlow',
    validator: { validate: () => Promise.resolve(true) },
  });

  it.each([
    ['MaxLength', MaxLength(4)],
    ['Allow', Allow()],
  ])('accepts the decorator %s', (_name, decorator) => {
    expect(() => {
      assertRulesApply(createPlantClass('name', decorator), example);
    }).not.toThrow();
  });

  it.each([
    ['isKnown', Validate(IsKnown)],
    ['isSlow', isSlow],
  ])('throws when the decorator %s is asynchronous', (name, decorator) => {
    expect(() => {
      assertRulesApply(createPlantClass('name', decorator), example);
    }).toThrow(
      `Plant.name: the decorator "${name}" is asynchronous, and validateSync would ignore it.`,
    );
  });

  it.each([
    ['id', 'IsPositive', IsPositive(), '1: id must be a positive number.'],
    ['name', 'ValidateNested', ValidateNested(), 'Fern: '],
  ] as const)('throws when the %s can never pass %s', (property, _name, decorator, reason) => {
    expect(() => {
      assertRulesApply(createPlantClass(property, decorator), example);
    }).toThrow(`Plant.${property}: its decorators reject the valid example ${reason}`);
  });
});
