import { ValidateBy } from 'class-validator';
import { INT64_MAX, INT64_MIN, isInt64 } from '../int64';

export function IsInt64(): PropertyDecorator {
  return ValidateBy({
    name: 'isInt64',
    validator: {
      validate: isInt64,
      defaultMessage: (args) => {
        const type = typeof args?.value;
        if (type === 'undefined') return '$property is required';
        const number = type === 'number' || type === 'bigint' ? '' : 'a JSON number, ';
        return `$property must be ${number}an integer from ${String(INT64_MIN)} to ${String(INT64_MAX)}`;
      },
    },
  });
}

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

/**
 * Whether a value is a string that every store holds to the character. U+0000 excludes a string
 * (PostgreSQL cannot store it in a text), as does an unpaired surrogate (UTF-8 cannot encode it).
 */
export function isExactText(value: unknown): value is string {
  return typeof value === 'string' && value.isWellFormed() && !value.includes('\0');
}
