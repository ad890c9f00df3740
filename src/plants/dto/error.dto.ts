import { ApiProperty, ApiSchema, SCHEMA_PREFIX } from '../swagger-decorators';

/** The body of every answer that is not a success: specification, "Error". */
@ApiSchema({ name: `${SCHEMA_PREFIX}Error` })
export class ErrorDto {
  @ApiProperty({
    type: 'integer',
    format: 'int32',
    description: 'Numeric error value',
    example: 40003,
  })
  readonly error!: number;

  @ApiProperty({ description: 'Error text', example: 'A plant with this id exists already.' })
  readonly message!: string;
}
