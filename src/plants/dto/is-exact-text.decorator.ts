import { ValidateBy } from 'class-validator';

/**
 * The property is a string that every store keeps to the character. U+0000 is none (PostgreSQL has
 * no place for it in a text), nor is a surrogate without its partner (UTF-8 has no form for it).
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

function isExactText(value: unknown): boolean {
  return typeof value === 'string' && value.isWellFormed() && !value.includes('\0');
}
