import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { SwaggerModule } from '@nestjs/swagger';
import type { FastifyInstance, onRequestHookHandler } from 'fastify';
import { createDocument } from './document';

/** The Swagger UI page may load only files of this server. It has inline styles, and icons in `data:` URLs. */
const PAGE_HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
};

/** Serves `/openapi.json` and Swagger UI at `/docs`, both public because Nest's guards do not apply to them. */
export function serveDocument(app: NestFastifyApplication): void {
  const instance: FastifyInstance = app.getHttpAdapter().getInstance();
  instance.addHook('onRoute', (route) => {
    if (route.url === '/docs') route.onRequest = addPageHeaders;
    if (route.url.startsWith('/docs/')) route.onRequest = ignoreRange;
    // The relative URL of the server in the document works only from `/docs`.
    if (['/docs/', '/docs/index.html'].includes(route.url)) {
      route.handler = (_request, reply) => reply.redirect('../docs', 308);
    }
  });
  instance.get('/', (_request, reply) => reply.redirect('docs'));
  // The document is created at the first request.
  SwaggerModule.setup('docs', app, () => createDocument(app), {
    raw: ['json'],
    jsonDocumentUrl: 'openapi.json',
    customSiteTitle: 'Plant Store',
    // The validator badge would be loaded from another origin.
    swaggerOptions: { docExpansion: 'full', tryItOutEnabled: true, validatorUrl: null },
  });
}

const addPageHeaders: onRequestHookHandler = (_request, reply, done) => {
  void reply.headers(PAGE_HEADERS);
  done();
};

/** A range that is not in the file would get an error, and browsers request none. */
const ignoreRange: onRequestHookHandler = ({ headers }, _reply, done) => {
  delete headers.range;
  done();
};
