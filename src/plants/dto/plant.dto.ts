import { ValidateIf } from 'class-validator';
import type { PlantJson, StoredPlant } from '../plant';
import { SCHEMA_PREFIX } from '../plants.options';
import { ApiProperty, ApiPropertyOptional, ApiSchema } from '../swagger-decorators';
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
export class NewPlantDto extends PlantDto implements StoredPlant {
  @ApiProperty({
    type: 'integer',
    format: 'int64',
    description: 'Identification number of the plant',
    example: 1,
  })
  @IsInt64()
  readonly id!: bigint;

  toJSON(): PlantJson {
    const { name, tag } = this;
    return { id: String(this.id), name, ...(tag === undefined ? {} : { tag }) };
  }
}

/**
 * Example requests. The large id is above 2^53 and yet exact as a double, so that the document of a
 * host has it as it is written here. Our own document has one that no double holds.
 */
export const newPlantExamples = {
  tagged: { summary: 'A plant with a tag', value: { id: 1, name: 'Fern', tag: 'shade' } },
  untagged: { summary: 'A plant without a tag', value: { id: 2, name: 'Moss' } },
  largeId: {
    summary: 'An id above 2^53, which is kept exactly',
    value: { id: 9_007_199_254_740_994, name: 'Ginkgo', tag: 'tree' },
  },
};
