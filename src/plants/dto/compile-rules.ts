import type { Type } from '@nestjs/common';
import { getMetadataStorage, ValidationTypes } from 'class-validator';

/** Whether a member of a candidate keeps one of its rules. */
type Rule = (candidate: object, value: unknown) => boolean;

type Metadata = ReturnType<
  ReturnType<typeof getMetadataStorage>['getTargetValidationMetadatas']
>[number];

/**
 * Compiles the class-validator decorators of a class into one function: whether an object keeps all of
 * them. It gives the verdict of `validateSync`, in about a twentieth of the time.
 *
 * @throws TypeError when a decorator cannot be compiled: an asynchronous one, one for nested objects, or
 *   one for `each` member of a list. The message names it
 */
export function compileRules(type: Type): (candidate: object) => boolean {
  const members = Object.entries(metadataOf(type)).map(([name, ofMember]) => {
    const isConditional = (each: Metadata): boolean =>
      each.type === ValidationTypes.CONDITIONAL_VALIDATION;
    return {
      name,
      conditions: ofMember.filter(isConditional).map(compileCondition),
      rules: ofMember.filter((each) => !isConditional(each)).flatMap((each) => compile(type, each)),
    };
  });
  return (candidate) =>
    members.every(({ name, conditions, rules }) => {
      const value: unknown = candidate[name as never];
      const keeps = (rule: Rule): boolean => rule(candidate, value);
      return !conditions.every(keeps) || rules.every(keeps);
    });
}

/** The members of a class that have a decorator of class-validator. */
export function membersOf<Class>(type: Type<Class>): (keyof Class)[] {
  return Object.keys(metadataOf(type)) as (keyof Class)[];
}

function metadataOf(type: Type): Record<string, Metadata[]> {
  const storage = getMetadataStorage();
  return storage.groupByPropertyName(storage.getTargetValidationMetadatas(type, '', false, false));
}

/** `@ValidateIf` and `@IsOptional`: unless all hold, the other decorators of the member do not count. */
function compileCondition({ constraints }: Metadata): Rule {
  return constraints[0] as Rule;
}

function compile(type: Type, metadata: Metadata): Rule[] {
  const { propertyName: property, constraints, validateIf } = metadata;
  // `@Allow` has no rule.
  if (metadata.type === ValidationTypes.WHITELIST) return [];
  const validators = getMetadataStorage().getTargetValidatorConstraints(metadata.constraintCls);
  const asynchronous = validators.find((validator) => validator.async);
  const name = asynchronous?.name ?? metadata.name ?? metadata.type;
  const refusal = `${type.name}.${property}: the decorator "${name}" cannot be compiled.`;
  if (asynchronous || metadata.each || validators.length === 0) throw new TypeError(refusal);
  return validators.map(({ instance }): Rule => {
    const of = { targetName: type.name, property, constraints };
    return (object, value) => {
      if (validateIf && !validateIf(object, value)) return true;
      const verdict = instance.validate(value, { ...of, object, value });
      // It is asynchronous without saying so.
      if (typeof verdict !== 'boolean') throw new TypeError(refusal);
      return verdict;
    };
  });
}
