import type { INestApplication } from '@nestjs/common';
import { DocumentBuilder, type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';
import { errorResponses } from '../../plants/dto/error.dto';
import { type CatalogueEntry, errorCatalogue } from '../../plants/errors/errors';
import { PlantsModule } from '../../plants/plants.module';
import { SCHEMA_PREFIX } from '../../plants/swagger-decorators';

/** Creates the OpenAPI document of the contract from the decorators. */
export function createDocument(app: INestApplication): OpenAPIObject {
  const config = new DocumentBuilder()
    .setOpenAPIVersion('3.1.0')
    .setTitle('Plant Store')
    .setDescription(describeApi())
    .setVersion('1.0.0')
    .setLicense('MIT', 'https://opensource.org/license/mit')
    .addServer('.', 'This server')
    .addTag('Plants', 'Creating plants')
    .addSecurity('bearerAuth', { type: 'http', scheme: 'bearer', description: TOKEN })
    .addSecurityRequirements('bearerAuth')
    .build();
  const document = SwaggerModule.createDocument(app, config, {
    include: [PlantsModule],
    operationIdFactory: (_controller, method) => `${method}Plant`,
  });
  // The server rejects requests with more errors than the route declares: all except 404 and 405, which
  // belong to unknown paths and methods.
  const responses = errorResponses(({ status }) => ![404, 405].includes(status));
  for (const operation of operationsOf(document)) {
    operation.security = [{ bearerAuth: [] }];
    Object.assign(operation.responses, responses);
  }
  // DocumentBuilder adds an empty contact.
  delete document.info.contact;
  declareInheritance(document.components?.schemas ?? {});
  // Only a host's document needs the prefix of schema names.
  return JSON.parse(JSON.stringify(document).replaceAll(SCHEMA_PREFIX, '')) as OpenAPIObject;
}

/** The operations of a document that {@link createDocument} created. */
function operationsOf({ paths }: OpenAPIObject): OperationObject[] {
  return Object.values(paths).flatMap((path) => Object.values(path) as OperationObject[]);
}

const TOKEN =
  'An access token, issued by the operator of this service or by its identity provider. If the service is started without tokens, it generates one and prints it in a `curl` command.';

function describeApi(): string {
  const rows = Object.values<CatalogueEntry>(errorCatalogue).map(
    ({ error, status, meaning }) => `| ${error} | ${status} | ${meaning} |`,
  );
  return `Stores plants exactly and durably. A 200 response means that the plant is stored, including every digit of its id.

**The token.** ${TOKEN}

**Large ids.** An id is a 64-bit integer. JavaScript and some other languages round numbers above 2^53 before they send them, unless you use a type such as \`BigInt\`.

**Retries.** With an \`Idempotency-Key\`, you can retry a request until it succeeds. The plant is stored only once.

**Errors.** Every failure returns an \`Error\`. The meaning of its number never changes, and the first three digits are the HTTP status.

<details><summary>What the error numbers mean</summary>

| error | status | meaning |
| --- | --- | --- |
${rows.join('\n')}

</details>`;
}

type OperationObject = NonNullable<OpenAPIObject['paths'][string]['post']>;
type Schemas = NonNullable<NonNullable<OpenAPIObject['components']>['schemas']>;

/**
 * Declares NewPlant as the contract does: a Plant with an id. Without this, `@nestjs/swagger` copies the
 * properties of the base class into the derived schema.
 */
function declareInheritance(schemas: Schemas): void {
  const name = `${SCHEMA_PREFIX}NewPlant`;
  const flattened = schemas[name];
  const id = flattened && 'properties' in flattened ? flattened.properties?.id : undefined;
  if (id === undefined) throw new Error('The schema of NewPlant has no id.');
  const own = { type: 'object', properties: { id }, required: ['id'] };
  schemas[name] = { allOf: [{ $ref: '#/components/schemas/Plant' }, own] };
}
