import type * as swagger from '@nestjs/swagger';

const installed = load();

/** Whether `@nestjs/swagger` is installed. */
export const hasSwagger = installed !== undefined;

/**
 * The decorators of `@nestjs/swagger`. Where it is not installed they do nothing: a host without an
 * OpenAPI document needs none.
 */
export const {
  ApiBearerAuth,
  ApiBody,
  ApiExtraModels,
  ApiHeader,
  ApiOkResponse,
  ApiOperation,
  ApiProperty,
  ApiPropertyOptional,
  ApiResponse,
  ApiSchema,
  ApiTags,
  getSchemaPath,
} = installed ?? withoutEffect();

/** The prefix of our schema names in a host's document, where the host may have an `Error` of its own. */
export const SCHEMA_PREFIX = 'PlantStore.';

function load(): typeof swagger | undefined {
  try {
    // Not createRequire(), which bundlers do not follow.
    return require('@nestjs/swagger') as typeof swagger;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}

function withoutEffect(): typeof swagger {
  const decorator = (): undefined => undefined;
  return new Proxy({} as typeof swagger, { get: () => () => decorator });
}
