import { ValidateBy, ValidateIf } from 'class-validator';
import { INT64_MAX, INT64_MIN, isInt64 } from '../int64';
import type { Plant } from '../plant';
import { ApiProperty, ApiPropertyOptional, ApiSchema, SCHEMA_PREFIX } from '../swagger-decorators';

/** No U+0000, in a form that all dialects of regular expressions read alike. */
const TEXT = '^[^\\x00]*$';

/** The answer to a successful creation: specification, "Plant". */
@ApiSchema({ name: `${SCHEMA_PREFIX}Plant` })
export class PlantDto {
  @ApiProperty({ description: 'The name of the plant', pattern: TEXT, example: 'Fern' })
  @IsExactText()
  readonly name!: string;

  /** `null` is not absent. */
  @ApiPropertyOptional({
    type: String,
    description: 'Tag that specifies the type of the plant',
    pattern: TEXT,
    example: 'shade',
  })
  @ValidateIf((plant: PlantDto) => plant.tag !== undefined)
  @IsExactText()
  readonly tag?: string | undefined;
}

export const plantExamples = {
  tagged: { summary: 'A plant with a tag', value: { name: 'Fern', tag: 'shade' } },
  untagged: { summary: 'A plant without a tag', value: { name: 'Moss' } },
};

/** The request body of a creation: specification, "NewPlant". Its decorators are the rules. */
@ApiSchema({ name: `${SCHEMA_PREFIX}NewPlant` })
export class NewPlantDto extends PlantDto implements Plant {
  @ApiProperty({
    type: 'integer',
    format: 'int64',
    description: 'Identification number of the plant',
    example: 1,
  })
  @IsInt64()
  readonly id!: bigint;
}

/** Example requests. Their ids are small, because documents and pages hold numbers as doubles. */
export const newPlantExamples = {
  tagged: { summary: 'A plant with a tag', value: { id: 1, name: 'Fern', tag: 'shade' } },
  untagged: { summary: 'A plant without a tag', value: { id: 2, name: 'Moss' } },
};

function IsInt64(): PropertyDecorator {
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

function IsExactText(): PropertyDecorator {
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
