import { ValidateBy } from 'class-validator';
import { INT64_MAX, INT64_MIN } from '../int64';
import { isInt64 } from '../new-plant.rules';

/** The property is a bigint that fits 64 bits, which is how an exact JSON integer is represented. */
export function IsInt64(): PropertyDecorator {
  return ValidateBy({
    name: 'isInt64',
    validator: {
      validate: isInt64,
      defaultMessage: (args) =>
        args?.value === undefined
          ? '$property is required'
          : `$property must be an integer from ${String(INT64_MIN)} to ${String(INT64_MAX)}`,
    },
  });
}
