import type { INestApplication } from '@nestjs/common';
import { DocumentBuilder, type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';
import { errorResponses } from '../../plants/http/error.dto';
import { type CatalogueEntry, errorCatalogue } from '../../plants/errors/errors';
import { SCHEMA_PREFIX } from '../../plants/plant/swagger-decorators';

/** Creates the OpenAPI document of the contract from the decorators, and adds the errors and headers of every route. */
export function createDocument(app: INestApplication): OpenAPIObject {
  const config = new DocumentBuilder()
    .setOpenAPIVersion('3.1.0')
    .setTitle('Plant Store')
    .setDescription(DESCRIPTION)
    .setVersion('1.0.0')
    .setLicense('MIT', 'https://opensource.org/license/mit')
    .addServer('.', 'This server')
    .addTag('Plants', 'Creating plants')
    .addSecurity('bearerAuth', {
      type: 'http',
      scheme: 'bearer',
      description:
        'An access token, issued by the operator of this service or by its identity provider. If the service is started without tokens, it generates one and prints it in a `curl` command.',
    })
    .addSecurityRequirements('bearerAuth')
    .build();
  const document = SwaggerModule.createDocument(app, config, {
    // `createPlant` for the method `create` of `PlantsController`.
    operationIdFactory: (controller, method) => method + controller.replace(/s?Controller$/, ''),
  });
  for (const operation of Object.values(document.paths).flatMap<Operation>(Object.values)) {
    const { requestBody, responses } = operation;
    operation.security = [{ bearerAuth: [] }];
    Object.assign(
      responses,
      errorResponses(
        (entry) =>
          isOfEveryRoute(entry) ||
          (requestBody !== undefined && BODY_ERRORS.includes(entry)) ||
          isDeclared(entry, responses),
      ),
    );
    for (const [status, response] of Object.entries(responses)) {
      // The token is checked before the rate.
      if (['401', '403'].includes(status)) continue;
      response.headers = { ...response.headers, ...RATE_LIMIT_HEADERS };
    }
  }
  // DocumentBuilder adds an empty contact.
  delete document.info.contact;
  // Only a host's document needs the prefix of schema names.
  return JSON.parse(JSON.stringify(document).replaceAll(SCHEMA_PREFIX, '')) as OpenAPIObject;
}

interface Operation {
  security?: object[];
  readonly requestBody?: object;
  readonly responses: Record<string, OperationResponse>;
}
interface OperationResponse {
  headers?: object;
  readonly content?: { readonly 'application/json'?: { readonly examples?: object } };
}

const { notJson, unsupportedMediaType, bodyTooLarge } = errorCatalogue;

/** The errors of `BodyGuard`. */
const BODY_ERRORS: readonly CatalogueEntry[] = [notJson, unsupportedMediaType, bodyTooLarge];

/**
 * Whether the server may reject a request of any route with an error. 404 and 405 belong to other paths and methods,
 * 40008 to routes whose pipes or methods throw exceptions of Nest.
 */
function isOfEveryRoute({ error, outcome, status }: CatalogueEntry): boolean {
  const isOfSomeRoutes = error === errorCatalogue.invalidRequest.error;
  // The guards return 50300, and anything may return 50000. Their outcomes concern create requests alone.
  if ([500, 503].includes(status)) return true;
  return outcome === undefined && ![404, 405].includes(status) && !isOfSomeRoutes;
}

function isDeclared({ error }: CatalogueEntry, responses: Operation['responses']): boolean {
  return Object.values(responses).some(
    ({ content }) => error in (content?.['application/json']?.examples ?? {}),
  );
}

const stringHeader = (description: string, example: string): object => ({
  description: `${description}. Only if the rate is limited`,
  schema: { type: 'string' },
  example,
});

/** The headers of `RateLimitGuard`. */
const RATE_LIMIT_HEADERS = {
  'RateLimit-Policy': stringHeader('The quota, and the window in seconds', '"caller";q=100;w=60'),
  RateLimit: stringHeader('The remaining requests and seconds', '"caller";r=99;t=60'),
};

const DESCRIPTION = `Stores plants exactly and durably. A 200 response means that the plant is stored, including every digit of its id.

**Large ids.** An id is a 64-bit integer. JavaScript and some other languages round numbers above 2^53 before they send them, unless you use a type such as \`BigInt\`.

**Retries.** With an \`Idempotency-Key\`, you can retry a request until it succeeds. The plant is stored only once.

**Errors.** Every failure returns an \`Error\`. The meaning of its number never changes, and the first three digits are the HTTP status.`;
