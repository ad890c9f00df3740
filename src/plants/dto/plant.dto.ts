import { ValidateIf } from 'class-validator';
import type { Plant } from '../plant';
import { ApiProperty, ApiPropertyOptional, ApiSchema, SCHEMA_PREFIX } from '../swagger-decorators';
import { IsExactText, IsInt64 } from './new-plant.decorators';

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
