import { STATUS_CODES } from 'node:http';
import { applyDecorators } from '@nestjs/common';
import type { ApiResponseOptions } from '@nestjs/swagger';
import { type CatalogueEntry, errorCatalogue, type ErrorKind } from '../../errors';
import { SCHEMA_PREFIX } from '../plants.options';
import { ApiProperty, ApiResponse, ApiSchema } from '../swagger-decorators';

/** The body of every answer that is not a success: specification, "Error". */
@ApiSchema({ name: `${SCHEMA_PREFIX}Error` })
export class ErrorDto {
  @ApiProperty({
    type: 'integer',
    format: 'int32',
    description: 'Numeric error value',
    example: 40003,
  })
  readonly error!: number;

  @ApiProperty({ description: 'Error text', example: 'A plant with this id exists already.' })
  readonly message!: string;
}

/** The statuses that have a response of their own in the document; the others share `default`. */
const SEPARATE_STATUSES = [400, 401, 403, 429, 503, 504];

/** The errors of the operation in any host. */
const OWN_KINDS: readonly ErrorKind[] = [
  ...(['notJson', 'invalidPlant', 'idTaken', 'unsupportedMediaType', 'bodyTooLarge'] as const),
  ...(['invalidIdempotencyKey', 'idempotencyKeyReused'] as const),
  ...(['missingCredentials', 'invalidToken', 'forbidden'] as const),
  ...(['internal', 'unavailable', 'outcomeUnknown'] as const),
];

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
const headersOfStatus: Partial<Record<number | 'default', ApiResponseOptions['headers']>> = {
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
  invalidIdempotencyKey:
    'The Idempotency-Key must be 1 to 255 visible ASCII characters, as they are or as a quoted string.',
};

/**
 * Declares the errors of the catalogue that the operation of a controller answers with: one response
 * for each separate status and one for the rest, with an example and the meaning of each number.
 *
 * @param hostErrors what the host answers it with besides
 */
export function ApiErrorResponses(hostErrors: readonly ErrorKind[]): ClassDecorator {
  const all = Object.entries(errorCatalogue) as [ErrorKind, CatalogueEntry][];
  const kinds = all.filter(([kind]) => OWN_KINDS.includes(kind) || hostErrors.includes(kind));
  const kindsByStatus = Map.groupBy(kinds, ([, { status }]) =>
    SEPARATE_STATUSES.includes(status) ? status : 'default',
  );
  const responses = [...kindsByStatus].map(([status, kindsOfStatus]) =>
    ApiResponse({
      status,
      description: descriptions[status] ?? STATUS_CODES[status] ?? '',
      headers: headersOfStatus[status],
      type: ErrorDto,
      examples: Object.fromEntries(
        kindsOfStatus.map(([kind, { error, meaning }]) => {
          const message = messageOfKind[kind] ?? meaning;
          return [error, { summary: `${error}: ${meaning}`, value: { error, message } }];
        }),
      ),
    }),
  );
  return applyDecorators(...responses);
}
