import type * as swagger from '@nestjs/swagger';

/**
 * The decorators of `@nestjs/swagger`. Where it is not installed they do nothing: a host without an
 * OpenAPI document needs none.
 */
const installed = loadSwagger();
const none = () => (): void => undefined;

export const ApiBearerAuth = installed?.ApiBearerAuth ?? none;
export const ApiBody = installed?.ApiBody ?? none;
export const ApiExtraModels = installed?.ApiExtraModels ?? none;
export const ApiHeader = installed?.ApiHeader ?? none;
export const ApiOkResponse = installed?.ApiOkResponse ?? none;
export const ApiOperation = installed?.ApiOperation ?? none;
export const ApiProperty = installed?.ApiProperty ?? none;
export const ApiResponse = installed?.ApiResponse ?? none;
export const ApiSchema = installed?.ApiSchema ?? none;
export const ApiTags = installed?.ApiTags ?? none;

/** A reference to the schema of a class, for use in one of the decorators. */
export function schemaOf(type: NewableFunction): { readonly $ref: string } {
  return { $ref: installed?.getSchemaPath(type) ?? '' };
}

function loadSwagger(): typeof swagger | undefined {
  try {
    return require('@nestjs/swagger') as typeof swagger;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}

/** The prefix of our schema names in a host's document, where the host may have an `Error` of its own. */
export const SCHEMA_PREFIX = 'PlantStore.';
