import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { OpenAPIObject } from '@nestjs/swagger';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020';
import addFormats from 'ajv-formats';

/** The content of a request or response, by media type. */
export type Content = Readonly<
  Record<string, { schema: { $ref: string }; examples: Record<string, { value: unknown }> }>
>;

interface Header {
  readonly required: boolean;
  readonly schema: { readonly type: string; readonly enum?: readonly string[] };
}

/** An operation: the properties that tests read. */
interface Operation {
  readonly requestBody: { readonly content: Content };
  readonly responses: Readonly<
    Record<string, { headers?: Record<string, Header>; content: Content }>
  >;
}

/** The committed OpenAPI document. A test checks that the service serves the same one. */
export const document = JSON.parse(
  readFileSync(join(__dirname, '../../openapi.json'), 'utf8'),
) as OpenAPIObject & { readonly paths: { readonly '/plants': { readonly post: Operation } } };

export const createPlantOperation = document.paths['/plants'].post;

const ajv = addFormats(new Ajv2020({ strict: false, allErrors: true }));
ajv.addSchema(document, 'openapi');

/** Creates a validator for a schema that the document refers to. */
export function createValidator({ $ref }: { readonly $ref: string }): ValidateFunction {
  return ajv.compile({ $ref: `openapi${$ref}` });
}

/** A response. Header names are in lower case. */
export interface TestResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: unknown;
}

/** Headers that a response may have only if the document declares them for its status. */
const HEADERS_TO_DECLARE = [
  'www-authenticate',
  'retry-after',
  'idempotent-replayed',
  'ratelimit',
  'ratelimit-policy',
];

/**
 * Checks a response against an operation, which must declare the status, and for it the media type, the schema
 * of the body and the headers. The number of an error must be in an example of the status.
 */
export function expectDeclaredResponse(
  { responses }: Operation,
  { status, headers, body }: TestResponse,
): void {
  const declared = responses[status] ?? responses.default;
  const content = declared?.content['application/json'];
  if (!declared || !content) throw new Error(`No ${status} in openapi.json: npm run openapi`);

  expect(headers['content-type']).toBe('application/json; charset=utf-8');
  const validate = createValidator(content.schema);
  validate(body);
  expect(validate.errors).toBeNull();
  if (status !== 200) {
    expect(Object.keys(content.examples)).toContain(String((body as { error: number }).error));
  }
  for (const [name, { required, schema }] of Object.entries(declared.headers ?? {})) {
    const value = headers[name.toLowerCase()];
    if (!required && value === undefined) continue;
    expect(value).toMatch(schema.type === 'integer' ? /^\d+$/ : /./);
    if (schema.enum) expect(schema.enum).toContain(value);
  }
  const declaredNames = Object.keys(declared.headers ?? {}).map((name) => name.toLowerCase());
  const present = HEADERS_TO_DECLARE.filter((name) => name in headers);
  expect(present.filter((name) => !declaredNames.includes(name))).toEqual([]);
}
