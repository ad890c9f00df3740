import type * as swagger from '@nestjs/swagger';
import { deferDecorators } from './deferred-decorators';

const deferred = deferDecorators(load);

/**
 * The decorators of `@nestjs/swagger`, which take effect with {@link loadSwagger}. Where it is
 * not installed they do nothing: a host without an OpenAPI document needs none.
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
} = deferred.decorators;

/**
 * Loads `@nestjs/swagger`, and applies the decorators. The entry for hosts calls it at once. The
 * program calls it when somebody asks for the document, because loading takes a sixth of its start.
 *
 * @returns undefined where it is not installed
 */
export function loadSwagger(): typeof swagger | undefined {
  return deferred.apply();
}

/** A reference to the schema of a class, for use in one of the decorators. */
export function schemaOf(type: new () => unknown): { readonly $ref: string } {
  return {
    get $ref() {
      return deferred.apply()?.getSchemaPath(type) ?? '';
    },
  };
}

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
