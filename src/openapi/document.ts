import type { INestApplication } from '@nestjs/common';
import { DocumentBuilder, type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';
import { type CatalogueEntry, errorCatalogue } from '../errors';
import { PlantsModule, SCHEMA_PREFIX } from '../plants';

/** Creates the OpenAPI document of the contract from the decorators. */
export function createDocument(app: INestApplication): OpenAPIObject {
  const config = new DocumentBuilder()
    .setOpenAPIVersion('3.1.0')
    .setTitle('OpenAPI Plant Store')
    .setDescription(description())
    .setVersion('1.0.0')
    .setLicense('MIT', 'https://opensource.org/license/mit')
    .addServer('.', 'Where this document is served')
    .addTag('Plants', 'Creating plants')
    .addSecurity('bearerAuth', { type: 'http', scheme: 'bearer', description: TOKEN })
    .addSecurityRequirements('bearerAuth')
    .build();
  const document = SwaggerModule.createDocument(app, config, {
    include: [PlantsModule],
    operationIdFactory: (_controller, method) => `${method}Plant`,
  });
  // DocumentBuilder adds one without members.
  delete document.info.contact;
  // Schema names need the prefix in the document of a host only.
  const text = JSON.stringify(document).replaceAll(SCHEMA_PREFIX, '');
  return withInheritance(JSON.parse(text) as OpenAPIObject);
}

const TOKEN =
  'An access token that the operator of this service or its identity provider has issued. A service that is started without tokens makes one, and prints it in a `curl` command.';

function description(): string {
  const rows = Object.values<CatalogueEntry>(errorCatalogue).map(
    ({ error, status, meaning }) => `| ${error} | ${status} | ${meaning} |`,
  );
  return `A sample plant store: it stores each plant exactly and durably.

**The token.** ${TOKEN}

**Errors.** Each failure is answered with an \`Error\`. The meaning of its number never changes, and the first three digits are the HTTP status. The sample API that this service implements has only the statuses 200 and 400. The other statuses, the \`Idempotency-Key\` and the \`pattern\` of texts are additions.

<details><summary>What the error numbers mean</summary>

| error | status | when |
| --- | --- | --- |
${rows.join('\n')}

</details>`;
}

/** Puts the id of an example that no double holds into a document as JSON or YAML. */
export function withLargeId(text: string): string {
  return text.replace('9007199254740994', '9007199254740993');
}

/**
 * Declares NewPlant as the contract does: a Plant with an id. `@nestjs/swagger` copies the members of
 * the base class into the derived schema instead.
 */
function withInheritance(document: OpenAPIObject): OpenAPIObject {
  const { schemas = {} } = document.components ?? {};
  const { NewPlant: flattened } = schemas;
  const id = flattened && 'properties' in flattened ? flattened.properties?.id : undefined;
  if (id === undefined) throw new Error('The schema of NewPlant has no id.');
  schemas.NewPlant = {
    allOf: [
      { $ref: '#/components/schemas/Plant' },
      { type: 'object', properties: { id }, required: ['id'] },
    ],
  };
  return document;
}
