import type { INestApplication } from '@nestjs/common';
import { DocumentBuilder, type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';
import { type CatalogueEntry, errorCatalogue } from '../errors';
import { PlantsModule } from '../plants';
import { SCHEMA_PREFIX } from '../plants/standalone';

/** The OpenAPI document of the contract, from the decorators of the code. */
export function createDocument(app: INestApplication): OpenAPIObject {
  const config = new DocumentBuilder()
    .setOpenAPIVersion('3.1.0')
    .setTitle('OpenAPI Plant Store')
    .setDescription(description())
    .setVersion('1.0.0')
    .setLicense('MIT', 'https://opensource.org/license/mit')
    .addServer('/', 'Where this document is served')
    .addTag('Plants', 'Creating plants')
    .addSecurity('bearerAuth', { type: 'http', scheme: 'bearer', description: TOKEN })
    .addSecurityRequirements('bearerAuth')
    .build();
  const document = SwaggerModule.createDocument(app, config, {
    include: [PlantsModule],
    operationIdFactory: (_controller, method) => `${method}Plant`,
  });
  return withInheritance(underContractNames(document));
}

const TOKEN =
  'An access token of this service, or one of the identity provider that it trusts. Its operator hands them out; one who starts it without any finds a token in the `curl` line that the service prints.';

function description(): string {
  const rows = Object.values<CatalogueEntry>(errorCatalogue).map(
    ({ error, status, meaning }) => `| ${error} | ${status} | ${meaning} |`,
  );
  return `A sample plant store: send a plant and it is kept, exactly and durably.

**The token.** ${TOKEN}

**Errors.** Whatever is not a success carries an \`Error\`. Its number never changes its meaning, and its first three digits are the HTTP status. 400 belongs to the specification, the rest is how this implementation answers where the specification leaves it open.

<details><summary>What the error numbers mean</summary>

| error | status | when |
| --- | --- | --- |
${rows.join('\n')}

</details>`;
}

/** Schemas carry the package's name in the document of a host; here they have the contract's. */
function underContractNames(document: OpenAPIObject): OpenAPIObject {
  return JSON.parse(JSON.stringify(document).replaceAll(SCHEMA_PREFIX, '')) as OpenAPIObject;
}

/**
 * States NewPlant as the contract does, as Plant and an id. `@nestjs/swagger` copies the members of
 * a base class into the schema of the derived one instead.
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
