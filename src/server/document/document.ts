import type { INestApplication } from '@nestjs/common';
import { DocumentBuilder, type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';
import { errorResponses } from '../../plants/dto/error.dto';
import { type CatalogueEntry, errorCatalogue } from '../../plants/errors/errors';
import { PLANTS_PATH } from '../../plants/plants.controller';
import { PlantsModule } from '../../plants/plants.module';
import { SCHEMA_PREFIX } from '../../plants/swagger-decorators';

/** Creates the OpenAPI document of the contract from the decorators. */
export function createDocument(app: INestApplication): OpenAPIObject {
  const config = new DocumentBuilder()
    .setOpenAPIVersion('3.1.0')
    .setTitle('Plant Store')
    .setDescription(description())
    .setVersion('1.0.0')
    .setLicense('MIT', 'https://opensource.org/license/mit')
    .addServer('.', 'This service')
    .addTag('Plants', 'Creating plants')
    .addSecurity('bearerAuth', { type: 'http', scheme: 'bearer', description: TOKEN })
    .addSecurityRequirements('bearerAuth')
    .build();
  const document = SwaggerModule.createDocument(app, config, {
    include: [PlantsModule],
    operationIdFactory: (_controller, method) => `${method}Plant`,
  });
  // The server itself refuses requests too, with more errors than the route: all but the answers to
  // unknown paths and methods.
  const operation = document.paths[`/${PLANTS_PATH}`]?.post;
  if (!operation) throw new Error('The document has no operation to create a plant.');
  Object.assign(
    operation.responses,
    errorResponses(({ status }) => ![404, 405].includes(status)),
  );
  // DocumentBuilder adds an empty contact.
  delete document.info.contact;
  declareInheritance(document.components?.schemas ?? {});
  return withoutPrefix(document) as OpenAPIObject;
}

const TOKEN =
  'An access token that the operator of this service or its identity provider has issued. A service that is started without tokens makes one, and prints it in a `curl` command.';

function description(): string {
  const rows = Object.values<CatalogueEntry>(errorCatalogue).map(
    ({ error, status, meaning }) => `| ${error} | ${status} | ${meaning} |`,
  );
  return `Stores plants exactly and durably: the answer 200 means that the plant is stored, to the last digit of its id.

**The token.** ${TOKEN}

**Large ids.** An id is a 64-bit integer. JavaScript and some other languages round numbers beyond 2^53 before they send them, unless you use a type such as \`BigInt\`.

**Sending again.** With an \`Idempotency-Key\` you can repeat a request until it is answered, and the plant is stored once.

**Errors.** Each failure is answered with an \`Error\`. The meaning of its number never changes, and the first three digits are the HTTP status.

<details><summary>What the error numbers mean</summary>

| error | status | when |
| --- | --- | --- |
${rows.join('\n')}

</details>`;
}

type Schemas = NonNullable<NonNullable<OpenAPIObject['components']>['schemas']>;

/**
 * Declares NewPlant as the contract does: a Plant with an id. `@nestjs/swagger` copies the members of
 * the base class into the derived schema instead.
 */
function declareInheritance(schemas: Schemas): void {
  const name = `${SCHEMA_PREFIX}NewPlant`;
  const flattened = schemas[name];
  const id = flattened && 'properties' in flattened ? flattened.properties?.id : undefined;
  if (id === undefined) throw new Error('The schema of NewPlant has no id.');
  const own = { type: 'object', properties: { id }, required: ['id'] };
  schemas[name] = { allOf: [{ $ref: '#/components/schemas/Plant' }, own] };
}

/** A part of the document without the prefix of schema names, which only a host's document needs. */
function withoutPrefix(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(withoutPrefix);
  if (typeof part === 'string' && part.startsWith('#')) return part.replace(SCHEMA_PREFIX, '');
  if (typeof part !== 'object' || part === null) return part;
  const members = Object.entries(part).map(([name, value]): [string, unknown] => [
    name.replace(SCHEMA_PREFIX, ''),
    withoutPrefix(value),
  ]);
  return Object.fromEntries(members);
}
