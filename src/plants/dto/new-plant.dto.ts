import { ApiProperty, ApiSchema } from './openapi';
import { IsInt64 } from './is-int64.decorator';
import { PlantDto } from './plant.dto';

/** What a creation is asked with: specification, "NewPlant". Its decorators are the rules. */
@ApiSchema({ name: 'NewPlant' })
export class NewPlantDto extends PlantDto {
  /** The exact integer, -2^63 to 2^63 - 1. A JSON number on the wire. */
  @ApiProperty({
    type: 'integer',
    format: 'int64',
    description: 'Identification number of the plant',
    example: 1,
  })
  @IsInt64()
  readonly id!: bigint;
}
