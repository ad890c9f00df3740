import type * as swagger from '@nestjs/swagger';

/**
 * The decorators of `@nestjs/swagger`. If the package is not installed, they do nothing, because it is
 * optional for hosts.
 */
const installed = loadSwagger();
const ignore = () => (): void => undefined;

export const ApiBearerAuth = installed?.ApiBearerAuth ?? ignore;
export const ApiBody = installed?.ApiBody ?? ignore;
export const ApiExtraModels = installed?.ApiExtraModels ?? ignore;
export const ApiHeader = installed?.ApiHeader ?? ignore;
export const ApiOkResponse = installed?.ApiOkResponse ?? ignore;
export const ApiOperation = installed?.ApiOperation ?? ignore;
export const ApiProperty = installed?.ApiProperty ?? ignore;
export const ApiResponse = installed?.ApiResponse ?? ignore;
export const ApiSchema = installed?.ApiSchema ?? ignore;
export const ApiTags = installed?.ApiTags ?? ignore;

/** Returns a reference to the schema of a class, for use in a decorator. */
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

/** Prefix of our schema names in a host's document, because the host may define its own `Error`. */
export const SCHEMA_PREFIX = 'PlantStore.';
