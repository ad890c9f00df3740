import { getMetadataStorage, validateSync } from 'class-validator';

/**
 * Fails at load if a decorator is asynchronous, because `validateSync` would ignore it, or if it rejects a
 * plant that is known to be valid, as a rule for numbers rejects every bigint. It depends on undocumented
 * behaviour of class-validator:
 *
 * - `getMetadataStorage` contains the decorators of a class, and the functions that check them.
 *
 * Tested with class-validator 0.14.4 and 0.15.1. `assert-rules-apply.spec.ts` fails if this behaviour changes.
 *
 * @param type a class with decorators of class-validator
 * @param example the properties of a valid instance
 * @throws TypeError naming the property and the decorator
 */
export function assertRulesApply(type: NewableFunction, example: object): void {
  const object = Object.assign(Object.create(type.prototype as object) as object, example);
  const storage = getMetadataStorage();
  for (const metadata of storage.getTargetValidationMetadatas(type, '', false, false)) {
    const { propertyName: property, constraints } = metadata;
    const value: unknown = object[property as never];
    for (const { instance, name, async } of storage.getTargetValidatorConstraints(
      metadata.constraintCls,
    )) {
      const result = instance.validate(value, {
        ...{ value, object, property, constraints },
        targetName: type.name,
      });
      if (async || typeof result !== 'boolean') {
        throw new TypeError(
          `${type.name}.${property}: the decorator "${name}" is asynchronous, and validateSync would ignore it.`,
        );
      }
    }
  }
  const [error] = validateSync(object);
  if (error === undefined) return;
  const reasons = Object.values(error.constraints ?? { '': 'it is not a nested object' });
  throw new TypeError(
    `${type.name}.${error.property}: its decorators reject the valid example ${String(error.value)}: ${reasons.join('; ')}.`,
  );
}
