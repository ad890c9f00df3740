import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { SwaggerModule } from '@nestjs/swagger';
import type { FastifyInstance } from 'fastify';
import { NotFoundError } from '../../plants/program';
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

/** Where the page is too. Only from `/docs` do the relative URLs of the document lead to the service. */
const ALIASES = ['/docs/', '/docs/index.html'];

/** On a narrow screen the headings of a table of header fields would run together. */
const CSS = '.swagger-ui .headers :is(th, td) { padding-right: 1em }';

/**
 * Serves the document at `/openapi.json` and `/openapi.yaml`, and Swagger UI at `/docs`, where `/`
 * leads a browser. All are public: guards of Nest do not apply to these routes.
 */
export function serveDocument(app: NestFastifyApplication): void {
  const instance: FastifyInstance = app.getHttpAdapter().getInstance();
  instance.addHook('onRoute', (route) => {
    if (route.url === '/docs') {
      route.onRequest = (_request, reply, done) => {
        void reply.headers(PAGE_HEADERS);
        done();
      };
    } else if (ALIASES.includes(route.url)) {
      route.onRequest = (_request, reply) => {
        void reply.redirect('../docs', 308);
      };
    }
  });
  instance.get('/', ({ headers }, reply) => {
    if (!/\btext\/html\b/i.test(headers.accept ?? '')) throw new NotFoundError();
    const vary = ['Accept', reply.getHeader('Vary') ?? []].flat().join(', ');
    return reply.header('Vary', vary).redirect('docs', 302);
  });
  // The document is made at the first request.
  SwaggerModule.setup('docs', app, () => createDocument(app), {
    jsonDocumentUrl: 'openapi.json',
    yamlDocumentUrl: 'openapi.yaml',
    customSiteTitle: 'Plant Store',
    customCss: CSS,
    swaggerOptions: {
      docExpansion: 'full',
      tryItOutEnabled: true,
      // The schemas are shown with the body and the answers.
      defaultModelsExpandDepth: -1,
      // The badge of the validator would come from another origin.
      validatorUrl: null,
    },
  });
}
