import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';
import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify';
import { NotFoundError } from '../../plants/errors/errors';
import { isLoopback } from '../../plants/http/loopback';
import { pathOf } from '../../plants/http/request';
import { PLANTS_PATH } from '../../plants/plants.controller';
import { createDocument } from './document';

/*
 * This file depends on undocumented behavior of `@nestjs/swagger`: the paths, files and layout of its page. Tested
 * with 12.0.2. `swagger-ui.e2e-spec.ts` fails if this behavior changes.
 */

/**
 * Headers of the Swagger UI page: it may load only files from this server. Inline styles are allowed,
 * because the page of `@nestjs/swagger` has some. Its style sheet contains icons as `data:` URLs.
 */
const PAGE_HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
};

/** Paths of the OpenAPI document in JSON and YAML. The page embeds its own copy. */
const DOCUMENT_PATHS = ['openapi.json', 'openapi.yaml'];

/** Paths redirected to `/docs`, because the relative URLs of the document work only from there. */
const ALIASES = ['/docs/', '/docs/index.html'];

/** The files that the page loads. Others in Swagger UI's folder (source maps, a manifest) get 404. */
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
 * On narrow screens, the column headings of the headers table would overlap, and the column of links,
 * which is always empty, would not fit.
 */
const CSS =
  '.swagger-ui .headers :is(th, td) { padding-right: 1em } .swagger-ui .response-col_links { display: none }';

/** Sets the viewport. Without it, phones would render the page of `@nestjs/swagger` at desktop width. */
const VIEWPORT =
  "document.head.append(Object.assign(document.createElement('meta'), { name: 'viewport', content: 'width=device-width' }));";

/**
 * Serves the document at `/openapi.json` and `/openapi.yaml`, and Swagger UI at `/docs`. Redirects browsers
 * from `/` to `/docs`. All of them are public, because Nest's guards do not apply to these routes.
 *
 * @param host the address on which the service listens. If it is a loopback address, the page remembers
 *   the token
 */
export function serveDocument(app: NestFastifyApplication, host: string): void {
  const instance: FastifyInstance = app.getHttpAdapter().getInstance();
  instance.addHook('onRoute', (route) => {
    if (route.url === '/docs' || route.url.startsWith('/docs/')) route.onRequest = allowPagePaths;
  });
  instance.get('/', ({ headers }, reply) => {
    if (!/\btext\/html\b/i.test(headers.accept ?? '')) throw new NotFoundError();
    const vary = ['Accept', reply.getHeader('Vary') ?? []].flat().join(', ');
    return reply.header('Vary', vary).redirect('docs', 302);
  });
  instance.get('/docs/viewport.js', (_request, reply) =>
    reply.type('text/javascript').send(VIEWPORT),
  );
  // The document is created at the first request.
  SwaggerModule.setup('docs', app, () => createDocument(app), {
    jsonDocumentUrl: DOCUMENT_PATHS[0],
    yamlDocumentUrl: DOCUMENT_PATHS[1],
    customSiteTitle: 'Plant Store',
    customCss: CSS,
    customJs: './docs/viewport.js',
    patchDocumentOnRequest: (request, _response, document) =>
      DOCUMENT_PATHS.includes(pathOf((request as FastifyRequest).url).slice(1))
        ? document
        : withFreshIds(document),
    swaggerOptions: {
      docExpansion: 'full',
      tryItOutEnabled: true,
      persistAuthorization: isLoopback(host),
      // The schemas are shown next to the request body and the responses.
      defaultModelsExpandDepth: -1,
      // The validator badge would be loaded from another origin.
      validatorUrl: null,
    },
  });
}

/** Allows only the paths of the page. The file server would return 403 for others. */
const allowPagePaths: onRequestHookHandler = (request, reply, done) => {
  const path = pathOf(request.url);
  if (ALIASES.includes(path)) {
    void reply.redirect('../docs', 308);
    return;
  }
  if (path === '/docs') void reply.headers(PAGE_HEADERS);
  else if (!FILES.includes(path)) throw new NotFoundError();
  done();
};

/** Copies the document with example ids from the clock. The page sends them, and an id can be used only once. */
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
