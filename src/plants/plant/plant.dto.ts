import { validateSync } from 'class-validator';
import { InvalidPlantError } from '../errors/errors';
import { type Plant, PLANT_COLUMNS } from './plant';
import { ApiSchema, SCHEMA_PREFIX } from './swagger-decorators';
import { Int64, Text } from './property.decorators';

/** The body of the response to a create request: specification, "Plant". */
@ApiSchema({ name: `${SCHEMA_PREFIX}Plant` })
export class PlantDto {
  @Text({ description: 'The name of the plant', example: 'Fern' })
  readonly name!: string;

  @Text({
    description: 'Tag that specifies the type of the plant',
    example: 'shade',
    isOptional: true,
  })
  readonly tag?: string | undefined;
}

/**
 * The body of a create request: specification, "NewPlant". Its decorators are the rules. Every instance
 * is valid and immutable, because only {@link NewPlantDto.from} creates instances.
 */
@ApiSchema({ name: `${SCHEMA_PREFIX}NewPlant` })
export class NewPlantDto extends PlantDto implements Plant {
  @Int64({ description: 'Identification number of the plant', example: 1 })
  readonly id!: bigint;

  private constructor() {
    super();
  }

  /**
   * Copies the properties that the contract names from any value, and validates them.
   * @throws InvalidPlantError naming each invalid property and the reason
   */
  static from(candidate: unknown): NewPlantDto {
    if (candidate instanceof NewPlantDto) return candidate;
    if (typeof candidate !== 'object' || candidate === null || Array.isArray(candidate)) {
      throw new InvalidPlantError('Not a NewPlant: it must be a JSON object.');
    }
    const input: { readonly [Name in keyof Plant]?: unknown } = candidate;
    const plant: { -readonly [Name in keyof Plant]?: unknown } = new NewPlantDto();
    for (const name of PLANT_COLUMNS) {
      // Read each property once, because it may be a getter.
      const value = input[name];
      if (value !== undefined) plant[name] = value;
    }
    const errors = validateSync(plant, { stopAtFirstError: true });
    if (errors.length > 0) {
      const reasons = errors.flatMap(({ constraints = {} }) => Object.values(constraints));
      throw new InvalidPlantError(`Not a NewPlant: ${reasons.join('; ')}.`);
    }
    return Object.freeze(plant) as NewPlantDto;
  }
}

/** Example requests. Their ids are small, because Swagger UI and JSON parsers read numbers as doubles. */
export const newPlantExamples = {
  tagged: { summary: 'A plant with a tag', value: { id: 1, name: 'Fern', tag: 'shade' } },
  untagged: { summary: 'A plant without a tag', value: { id: 2, name: 'Moss' } },
};
