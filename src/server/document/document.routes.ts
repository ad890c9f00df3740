import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';
import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify';
import { NotFoundError } from '../../plants/errors/errors';
import { isLoopback } from '../../plants/http/loopback';
import { pathOf } from '../../plants/http/request';
import { PLANTS_PATH } from '../../plants/plants.controller';
import { createDocument } from './document';

/**
 * Of the page: it loads only files of this server. Styles may be inline, because the page of
 * `@nestjs/swagger` has some; its style sheet has icons in `data:` URLs.
 */
const PAGE_HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
};

/** Where the document is, in JSON and in YAML. The page has one of its own. */
const DOCUMENTS = ['openapi.json', 'openapi.yaml'];

/** Where the page is too. Only from `/docs` do the relative URLs of the document lead to the service. */
const ALIASES = ['/docs/', '/docs/index.html'];

/** All that the page loads. Swagger UI's folder has more: source maps, another page, a manifest. */
const FILES = [
  '/docs/swagger-ui.css',
  '/docs/swagger-ui-bundle.js',
  '/docs/swagger-ui-standalone-preset.js',
  '/docs/swagger-ui-init.js',
  '/docs/favicon-16x16.png',
  '/docs/favicon-32x32.png',
  '/docs/viewport.js',
];

/**
 * On a narrow screen the headings of a table of header fields would run together, and the column of
 * links, of which there are none, would not fit.
 */
const CSS =
  '.swagger-ui .headers :is(th, td) { padding-right: 1em } .swagger-ui .response-col_links { display: none }';

/** The page of `@nestjs/swagger` has no viewport, so that a phone would lay it out as for a desk. */
const VIEWPORT =
  "document.head.append(Object.assign(document.createElement('meta'), { name: 'viewport', content: 'width=device-width' }));";

/**
 * Serves the document at `/openapi.json` and `/openapi.yaml`, and Swagger UI at `/docs`, where `/`
 * leads a browser. All are public: guards of Nest do not apply to these routes.
 *
 * @param host where the service listens. On this machine alone the page remembers the token
 */
export function serveDocument(app: NestFastifyApplication, host: string): void {
  const instance: FastifyInstance = app.getHttpAdapter().getInstance();
  instance.addHook('onRoute', (route) => {
    if (route.url === '/docs' || route.url.startsWith('/docs/')) route.onRequest = checkPath;
  });
  instance.get('/', ({ headers }, reply) => {
    if (!/\btext\/html\b/i.test(headers.accept ?? '')) throw new NotFoundError();
    const vary = ['Accept', reply.getHeader('Vary') ?? []].flat().join(', ');
    return reply.header('Vary', vary).redirect('docs', 302);
  });
  instance.get('/docs/viewport.js', (_request, reply) =>
    reply.type('text/javascript').send(VIEWPORT),
  );
  // The document is made at the first request.
  SwaggerModule.setup('docs', app, () => createDocument(app), {
    jsonDocumentUrl: DOCUMENTS[0],
    yamlDocumentUrl: DOCUMENTS[1],
    customSiteTitle: 'Plant Store',
    customCss: CSS,
    customJs: './docs/viewport.js',
    patchDocumentOnRequest: (request, _response, document) =>
      DOCUMENTS.includes(pathOf((request as FastifyRequest).url).slice(1))
        ? document
        : withFreshIds(document),
    swaggerOptions: {
      docExpansion: 'full',
      tryItOutEnabled: true,
      persistAuthorization: isLoopback(host),
      // The schemas are shown with the body and the answers.
      defaultModelsExpandDepth: -1,
      // The badge of the validator would come from another origin.
      validatorUrl: null,
    },
  });
}

/** Answers only the paths of the page. The file server would answer others with 403. */
const checkPath: onRequestHookHandler = (request, reply, done) => {
  const path = pathOf(request.url);
  if (ALIASES.includes(path)) {
    void reply.redirect('../docs', 308);
    return;
  }
  if (path === '/docs') void reply.headers(PAGE_HEADERS);
  else if (!FILES.includes(path)) throw new NotFoundError();
  done();
};

/** The document with example ids from the clock: the page sends them, and an id can be used once. */
function withFreshIds(document: OpenAPIObject): OpenAPIObject {
  const fresh = structuredClone(document);
  const body = fresh.paths[`/${PLANTS_PATH}`]?.post?.requestBody;
  const examples =
    body && 'content' in body ? body.content['application/json']?.examples : undefined;
  const now = Date.now();
  for (const [at, example] of Object.values(examples ?? {}).entries()) {
    if ('value' in example) Object.assign(example.value as object, { id: now + at });
  }
  return fresh;
}
