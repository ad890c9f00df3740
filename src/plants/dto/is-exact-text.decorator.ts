import { ValidateBy } from 'class-validator';
import { isExactText } from '../new-plant.rules';

/** The property is a string that every store keeps to the character. */
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
