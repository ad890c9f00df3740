import { STATUS_CODES } from 'node:http';
import { applyDecorators } from '@nestjs/common';
import { type CatalogueEntry, errorCatalogue, type ErrorKind } from '../errors/errors';
import {
  ApiExtraModels,
  ApiProperty,
  ApiResponse,
  ApiSchema,
  schemaOf,
  SCHEMA_PREFIX,
} from '../swagger-decorators';

/** The body of every answer that is not a success: specification, "Error". */
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

/** The statuses that have a response of their own in the document; the others share `default`. */
const SEPARATE_STATUSES = [400, 401, 403, 429, 503, 504];

const catalogue = Object.entries(errorCatalogue) as [ErrorKind, CatalogueEntry][];

/** The errors of the operation in any host: what a creation can come to, and what guards refuse. */
const isOwn = ({ outcome, status }: CatalogueEntry): boolean =>
  outcome !== undefined || [401, 403].includes(status);

const challenge = {
  description: 'The bearer challenge, RFC 6750 section 3',
  required: true,
  schema: { type: 'string' },
  example: 'Bearer realm="plants"',
} as const;
const delay = {
  description: 'After how many seconds to try again, RFC 9110 section 10.2.3',
  required: true,
  schema: { type: 'integer' },
  example: 1,
} as const;
const headersOfStatus: Partial<Record<number | 'default', object>> = {
  ...{ 401: { 'WWW-Authenticate': challenge }, 403: { 'WWW-Authenticate': challenge } },
  ...{ 429: { 'Retry-After': delay }, 503: { 'Retry-After': delay } },
};

/** In the place of the statuses' own names. The specification names 400 "Error". */
const descriptions: Partial<Record<string, string>> = {
  400: 'Error',
  default: 'Any other failure',
};

/** Example messages of the errors whose message says more than the catalogue. */
const messageOfKind: Partial<Record<ErrorKind, string>> = {
  notJson: 'The body is empty.',
  invalidPlant: 'Not a NewPlant: name is required.',
  unsupportedMediaType: 'The Content-Type must be application/json, in UTF-8.',
  bodyTooLarge: 'The body is larger than the limit of 1048576 bytes.',
  invalidIdempotencyKey:
    'The Idempotency-Key must be 1 to 255 visible ASCII characters, as they are or as a quoted string.',
};

/**
 * Describes errors of the catalogue as the responses of an operation, by status: one for each separate
 * status and one for the rest, with an example and the meaning of each number.
 */
export function errorResponses(
  isIncluded: (entry: CatalogueEntry) => boolean,
): Record<string, object> {
  const kindsByStatus = Map.groupBy(
    catalogue.filter(([, entry]) => isIncluded(entry)),
    ([, { status }]) => (SEPARATE_STATUSES.includes(status) ? status : 'default'),
  );
  const responses = [...kindsByStatus].map(([status, kindsOfStatus]): [string, object] => {
    const examples = kindsOfStatus.map(([kind, { error, meaning }]): [string, object] => {
      const message = messageOfKind[kind] ?? meaning;
      return [String(error), { summary: `${error}: ${meaning}`, value: { error, message } }];
    });
    const schema = schemaOf(ErrorDto);
    const content = { 'application/json': { schema, examples: Object.fromEntries(examples) } };
    const description = descriptions[status] ?? STATUS_CODES[status] ?? '';
    return [String(status), { description, headers: headersOfStatus[status], content }];
  });
  return Object.fromEntries(responses);
}

/** Declares the errors of the module's own operation, as {@link errorResponses} describes them. */
export function ApiErrorResponses(): ClassDecorator {
  const responses = Object.entries(errorResponses(isOwn));
  return applyDecorators(
    ApiExtraModels(ErrorDto),
    ...responses.map(([status, response]) =>
      ApiResponse({ status: status as 'default', ...response }),
    ),
  );
}
