import { ApiProperty, ApiSchema } from './openapi';

/** What every answer that is not a success carries: specification, "Error". */
@ApiSchema({ name: 'Error' })
export class ErrorDto {
  @ApiProperty({
    type: 'integer',
    format: 'int32',
    description: 'Numeric error value',
    example: 40002,
  })
  readonly error!: number;

  @ApiProperty({ description: 'Error text', example: 'name is required' })
  readonly message!: string;
}
