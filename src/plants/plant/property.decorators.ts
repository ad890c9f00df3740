import { applyDecorators } from '@nestjs/common';
import { Expose } from 'class-transformer';
import { ValidateBy } from 'class-validator';
import { INT64_MAX, INT64_MIN, isInt64 } from './int64';
import { ApiProperty } from './swagger-decorators';

interface PropertyOptions {
  readonly description: string;
  readonly example: unknown;
}

interface TextOptions extends PropertyOptions {
  /**
   * Whether the property may be absent. `null` is not absent.
   * @default false
   */
  readonly isOptional?: boolean;
  /**
   * The maximum number of characters (Unicode code points, as in JSON Schema).
   * @default none
   */
  readonly maxLength?: number;
}

/** Rejects U+0000, in syntax that all dialects of regular expressions share. They differ in what `\s` matches. */
const TEXT_PATTERN = '^[^\\x00]*$';

/**
 * Declares a property as a string that every store can keep exactly. U+0000 is invalid, because PostgreSQL cannot
 * store it in a `text`. An unpaired surrogate is invalid, because UTF-8 cannot encode it.
 */
export function Text({
  isOptional = false,
  maxLength,
  ...options
}: TextOptions): PropertyDecorator {
  const schema = { type: String, required: !isOptional, pattern: TEXT_PATTERN, maxLength };
  return Property({ ...schema, ...options }, (value) => {
    if (value === undefined) return isOptional ? undefined : 'is required';
    if (typeof value !== 'string') return 'must be a string';
    if (!value.isWellFormed() || value.includes('\0')) {
      return 'must not contain U+0000 or an unpaired surrogate';
    }
    if (maxLength === undefined || Array.from(value).length <= maxLength) return undefined;
    return `must have at most ${maxLength} characters`;
  });
}

/** Declares a property as a signed 64-bit integer, which is a bigint in the DTO. */
export function Int64(options: PropertyOptions): PropertyDecorator {
  // No bounds, because Swagger UI and JSON parsers would round them.
  return Property({ type: 'integer', format: 'int64', ...options }, (value) => {
    if (isInt64(value)) return undefined;
    if (value === undefined) return 'is required';
    const isNumber = typeof value === 'number' || typeof value === 'bigint';
    const kind = isNumber ? 'an integer' : 'a JSON number, an integer';
    return `must be ${kind} from ${INT64_MIN} to ${INT64_MAX}`;
  });
}

/**
 * Declares the OpenAPI schema of a property and its rule, with one message for each kind of invalid value. `Expose` keeps
 * the property in the response of a host whose `ClassSerializerInterceptor` excludes all others.
 * @param findError returns the message without the name of the property; undefined if the value is valid
 */
function Property(
  schema: object,
  findError: (value: unknown) => string | undefined,
): PropertyDecorator {
  const validator = {
    validate: (value: unknown) => findError(value) === undefined,
    defaultMessage: (args?: { value: unknown }) => `$property ${findError(args?.value)}`,
  };
  return applyDecorators(
    ApiProperty(schema),
    Expose(),
    ValidateBy({ name: 'contract', validator }),
  );
}
