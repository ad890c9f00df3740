import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import fastifyStatic from '@fastify/static';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { OpenAPIObject } from '@nestjs/swagger';
import type { FastifyInstance } from 'fastify';
import { dump } from 'js-yaml';
import { NotFoundError } from '../errors';
import { securityHeaders } from '../http';
import { createDocument, withLargeId } from './document';

const UI = join(__dirname, 'ui');
/** The program has the files of Swagger UI beside its own. */
const SWAGGER_UI = existsSync(join(UI, 'swagger-ui.css'))
  ? UI
  : dirname(require.resolve('swagger-ui-dist/package.json'));

/** The files of the page at `/docs`, and their folders. */
const files = {
  'docs.css': UI,
  'docs.js': UI,
  'favicon.svg': UI,
  'swagger-ui-bundle.js': SWAGGER_UI,
  'swagger-ui.css': SWAGGER_UI,
};

/** Only files of this server, and nothing inline. Swagger UI's style sheet has icons in `data:` URLs. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/**
 * Serves the document at `/openapi.json` and `/openapi.yaml`, and Swagger UI at `/docs`, where `/`
 * leads a browser. All are public.
 */
export function serveDocument(app: NestFastifyApplication): void {
  void app
    .getHttpAdapter()
    .getInstance()
    .register(async (instance: FastifyInstance) => {
      instance.addHook('onRequest', (_request, reply, done) => {
        void reply.headers(securityHeaders);
        done();
      });
      serveTexts(instance, app);
      await serveSwaggerUi(instance);
    });
}

/** Serves the document in both of its forms. It is made at the first request. */
function serveTexts(instance: FastifyInstance, app: NestFastifyApplication): void {
  let made: OpenAPIObject | undefined;
  const document = (): OpenAPIObject => (made ??= createDocument(app));
  instance.get('/openapi.json', (_request, reply) =>
    reply.type('application/json').send(withLargeId(JSON.stringify(document()))),
  );
  instance.get('/openapi.yaml', (_request, reply) =>
    reply
      .type('text/yaml')
      .send(withLargeId(dump(document(), { skipInvalid: true, noRefs: true }))),
  );
}

/**
 * Serves Swagger UI on a page of our own. The page of `@nestjs/swagger` has inline styles, which a
 * strict policy forbids.
 */
async function serveSwaggerUi(instance: FastifyInstance): Promise<void> {
  // Ranges are off: one that cannot be satisfied would be answered with 400.
  await instance.register(fastifyStatic, { root: UI, serve: false, acceptRanges: false });

  // The files never change, so no precondition protects anything. One that fails would be answered so too.
  instance.addHook('onRequest', ({ headers }, _reply, done) => {
    delete headers['if-match'];
    delete headers['if-unmodified-since'];
    done();
  });
  instance.get('/', ({ headers }, reply) => {
    if (!/\btext\/html\b/i.test(headers.accept ?? '')) throw new NotFoundError();
    return reply.header('Vary', 'Accept').redirect('docs', 302);
  });
  instance.get('/docs', (_request, reply) =>
    reply
      .headers({
        'Content-Security-Policy': CONTENT_SECURITY_POLICY,
        'Referrer-Policy': 'no-referrer',
      })
      .sendFile('index.html', UI),
  );
  instance.get('/docs/', (_request, reply) => reply.redirect('../docs', 308));
  for (const [name, folder] of Object.entries(files)) {
    instance.get(`/docs/${name}`, (_request, reply) => reply.sendFile(name, folder));
  }
}
