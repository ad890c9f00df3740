import { applyDecorators } from '@nestjs/common';
import { type CatalogueEntry, errorCatalogue } from '../errors/errors';
import {
  ApiExtraModels,
  ApiProperty,
  ApiResponse,
  ApiSchema,
  getSchemaPath,
  SCHEMA_PREFIX,
} from '../plant/swagger-decorators';

/** The body of every error response: specification, "Error". */
@ApiSchema({ name: `${SCHEMA_PREFIX}Error` })
export class ErrorDto {
  @ApiProperty({
    type: 'integer',
    format: 'int32',
    description: 'Numeric error value',
    example: errorCatalogue.idTaken.error,
  })
  readonly error!: number;

  @ApiProperty({ description: 'Error text', example: errorCatalogue.idTaken.meaning })
  readonly message!: string;
}

const challenge = {
  description: 'The bearer challenge, RFC 6750 section 3',
  required: true,
  schema: { type: 'string' },
  example: 'Bearer realm="plants"',
};
const delay = {
  description: 'The number of seconds to wait before a retry, RFC 9110 section 10.2.3',
  required: true,
  schema: { type: 'integer' },
  example: 1,
};

/** The responses that are documented separately, by status. All other errors share the `default` response. */
const responseOfStatus: Partial<Record<number | 'default', object>> = {
  // The specification calls this response "Error".
  400: { description: 'Error' },
  401: { description: 'Unauthorized', headers: { 'WWW-Authenticate': challenge } },
  403: { description: 'Forbidden', headers: { 'WWW-Authenticate': challenge } },
  429: { description: 'Too Many Requests', headers: { 'Retry-After': delay } },
  503: { description: 'Service Unavailable', headers: { 'Retry-After': delay } },
  504: { description: 'Gateway Timeout' },
  default: { description: 'Any other failure' },
};

/** Example messages of the errors whose messages are more specific than the catalogue. */
const messageOfKind: Partial<Record<string, string>> = {
  notJson: 'The body is empty.',
  invalidPlant: 'Not a NewPlant: name is required.',
  unsupportedMediaType: 'The Content-Type must be application/json, in UTF-8.',
  bodyTooLarge: 'The body is larger than the limit of 65536 bytes.',
  invalidIdempotencyKey:
    'The Idempotency-Key must be 1 to 255 visible ASCII characters, bare or as a quoted string.',
};

/**
 * Creates the error responses of an operation from the catalogue: one for each separate status and one for all others,
 * with the meaning and an example of each error.
 */
export function errorResponses(
  isIncluded: (entry: CatalogueEntry) => boolean,
): Record<string, object> {
  const byStatus = Map.groupBy(
    Object.entries<CatalogueEntry>(errorCatalogue).filter(([, entry]) => isIncluded(entry)),
    ([, { status }]) => (status in responseOfStatus ? status : 'default'),
  );
  const responses = Array.from(byStatus, ([status, entries]): [PropertyKey, object] => {
    const examples = entries.map(([kind, { error, meaning }]): [number, object] => {
      const message = messageOfKind[kind] ?? meaning;
      return [error, { summary: `${error}: ${meaning}`, value: { error, message } }];
    });
    const schema = { $ref: getSchemaPath(ErrorDto) };
    const content = { 'application/json': { schema, examples: Object.fromEntries(examples) } };
    return [status, { ...responseOfStatus[status], content }];
  });
  return Object.fromEntries(responses);
}

/** Declares error responses of an operation, or of all operations of a controller. */
export function ApiErrorResponses(
  isIncluded: (entry: CatalogueEntry) => boolean,
): ClassDecorator & MethodDecorator {
  const responses = Object.entries(errorResponses(isIncluded));
  return applyDecorators(
    ApiExtraModels(ErrorDto),
    ...responses.map(([status, response]) =>
      ApiResponse({ status: status as 'default', ...response }),
    ),
  );
}
