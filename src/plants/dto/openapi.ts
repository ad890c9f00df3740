import { createRequire } from 'node:module';
import type * as swagger from '@nestjs/swagger';

/**
 * The decorators that describe the contract, from `@nestjs/swagger` where the host has it. Where it
 * has not, they do nothing: a host without an OpenAPI document needs none.
 */
export const {
  ApiBadRequestResponse,
  ApiBearerAuth,
  ApiBody,
  ApiOkResponse,
  ApiOperation,
  ApiProperty,
  ApiPropertyOptional,
  ApiSchema,
  ApiTags,
} = load();

function load(): typeof swagger {
  try {
    return createRequire(__filename)('@nestjs/swagger') as typeof swagger;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw error;
    const decorator = () => undefined;
    return new Proxy({} as typeof swagger, { get: () => () => decorator });
  }
}
