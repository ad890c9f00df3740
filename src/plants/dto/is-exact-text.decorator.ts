import { ValidateBy } from '../validation-decorators';

/**
 * The property is a string that every store keeps to the character. U+0000 excludes a string
 * (PostgreSQL cannot store it in a text), as does an unpaired surrogate (UTF-8 cannot encode it).
 */
export function IsExactText(): PropertyDecorator {
  return ValidateBy({
    name: 'isExactText',
    validator: {
      validate: isExactText,
      defaultMessage: (args) =>
        args?.value === undefined
          ? '$property is required'
          : typeof args.value === 'string'
            ? '$property must not contain U+0000 or an unpaired surrogate'
            : '$property must be a string',
    },
  });
}

/** Whether a value is a string that every store keeps to the character. */
export function isExactText(value: unknown): boolean {
  return typeof value === 'string' && value.isWellFormed() && !value.includes('\0');
}
