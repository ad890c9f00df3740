import type { Type } from '@nestjs/common';
import { getMetadataStorage, type ValidationArguments } from 'class-validator';

/**
 * Compiles the class-validator decorators of a class into one check, so that a value which keeps
 * the rules does not pay for finding them: class-validator walks its metadata anew for each value
 * and prepares to report on it. What fails the check is for `validateSync` to explain.
 *
 * @returns whether an object of that shape keeps every rule
 * @throws Error when the class has a decorator other than custom validators and `ValidateIf`
 */
export function compileRules<T extends object>(
  target: Type<T>,
): (candidate: { readonly [Member in keyof T]?: unknown }) => boolean {
  const storage = getMetadataStorage();
  const metadata = storage.getTargetValidationMetadatas(target, '', false, false);

  const rules = Object.entries(storage.groupByPropertyName(metadata)).map(([property, all]) => {
    const conditions = all.filter(({ type }) => type === 'conditionalValidation');
    const validators = all.filter(({ type }) => type === 'customValidation');
    if (conditions.length + validators.length < all.length) {
      throw new Error(`${target.name}.${property} has a decorator that cannot be compiled`);
    }
    return {
      property: property as keyof T & string,
      applies: conditions.map(({ constraints }) => constraints[0] as (object: object) => boolean),
      checks: validators.flatMap(({ constraintCls, constraints = [] }) =>
        storage
          .getTargetValidatorConstraints(constraintCls)
          .map(({ instance }) => ({ instance, constraints })),
      ),
    };
  });

  return (object) => {
    for (const { property, applies, checks } of rules) {
      if (!applies.every((condition) => condition(object))) continue;
      const value = object[property];
      for (const { instance, constraints } of checks) {
        const args: ValidationArguments = {
          value,
          constraints,
          targetName: target.name,
          object,
          property,
        };
        if (instance.validate(value, args) !== true) return false;
      }
    }
    return true;
  };
}
