/*
 * Depends on undocumented behavior of `@nestjs/swagger` (tested: 12.0.2): the paths of its routes, `/docs`, `/docs/`,
 * `/docs/index.html` and `/docs/*`, the last for the files of `swagger-ui-dist`, a dependency of it.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { SwaggerModule } from '@nestjs/swagger';
import type { FastifyInstance, onRequestHookHandler, RouteHandlerMethod } from 'fastify';
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
  const sendFile = createFileHandler();
  instance.addHook('onRoute', (route) => {
    if (route.url === '/docs') route.onRequest = addPageHeaders;
    if (route.url === '/docs/*') route.handler = sendFile;
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

/** The files that the page loads, with their media types. */
const PAGE_FILES = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'swagger-ui-standalone-preset.js': 'text/javascript; charset=utf-8',
  'favicon-16x16.png': 'image/png',
  'favicon-32x32.png': 'image/png',
};

/**
 * Creates the handler for the files of the page, from memory that all connections share. A stream, as `@fastify/static`
 * sends it, would keep parts of a file in memory for each client that does not read it: 784 MB for 4,000 clients.
 */
function createFileHandler(): RouteHandlerMethod {
  const load = createRequire(require.resolve('@nestjs/swagger'));
  const getAbsolutePath = load('swagger-ui-dist/absolute-path.js') as () => string;
  const files = new Map(
    Object.entries(PAGE_FILES).map(([name, type]) => {
      return [name, { type, content: readFileSync(join(getAbsolutePath(), name)) }];
    }),
  );
  return (request, reply) => {
    const file = files.get((request.params as { readonly '*': string })['*']);
    if (file) return reply.type(file.type).send(file.content);
    reply.callNotFound();
    return reply;
  };
}
