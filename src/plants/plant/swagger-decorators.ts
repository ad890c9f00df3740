import type * as swagger from '@nestjs/swagger';

const ignore = () => (): void => undefined;

/** The decorators of `@nestjs/swagger`. They do nothing if the package, which is optional for hosts, is missing. */
export const {
  ApiBearerAuth = ignore,
  ApiBody = ignore,
  ApiExtraModels = ignore,
  ApiHeader = ignore,
  ApiOkResponse = ignore,
  ApiOperation = ignore,
  ApiProperty = ignore,
  ApiResponse = ignore,
  ApiSchema = ignore,
  ApiTags = ignore,
  getSchemaPath = () => '',
} = loadSwagger();

function loadSwagger(): Partial<typeof swagger> {
  try {
    return require('@nestjs/swagger') as typeof swagger;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') return {};
    throw error;
  }
}

/** Prefix of our schema names in a host's document, because the host may define its own `Error`. */
export const SCHEMA_PREFIX = 'PlantStore.';
