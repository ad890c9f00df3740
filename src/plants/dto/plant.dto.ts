import { ApiProperty, ApiPropertyOptional, ApiSchema, SCHEMA_PREFIX } from '../swagger-decorators';
import { ValidateIf } from 'class-validator';
import { IsExactText } from './is-exact-text.decorator';

/** The answer to a successful creation: specification, "Plant". */
@ApiSchema({ name: `${SCHEMA_PREFIX}Plant` })
export class PlantDto {
  /** Any string without U+0000 and unpaired surrogates, the empty one included. */
  @ApiProperty({ description: 'The name of the plant', example: 'Fern' })
  @IsExactText()
  readonly name!: string;

  /** As {@link name}, or absent. `null` is not absent. */
  @ApiPropertyOptional({
    type: String,
    description: 'Tag that specifies the type of the plant',
    example: 'shade',
  })
  @ValidateIf((plant: PlantDto) => plant.tag !== undefined)
  @IsExactText()
  readonly tag?: string | undefined;
}

/** Example answers. */
export const plantExamples = {
  tagged: { summary: 'A plant with a tag', value: { name: 'Fern', tag: 'shade' } },
  untagged: { summary: 'A plant without a tag', value: { name: 'Moss' } },
};
