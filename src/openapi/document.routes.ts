import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import fastifyStatic from '@fastify/static';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance } from 'fastify';
import { dump } from 'js-yaml';
import { NotFoundError } from '../errors';
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
  let texts: Promise<DocumentTexts> | undefined;
  const instance = app.getHttpAdapter().getInstance();
  instance.get('/openapi.json', async (_request, reply) => {
    const { json } = await (texts ??= writeDocument(app));
    return reply.type('application/json').send(json);
  });
  instance.get('/openapi.yaml', async (_request, reply) => {
    const { yaml } = await (texts ??= writeDocument(app));
    return reply.type('text/yaml').send(yaml);
  });
  void instance.register(serveSwaggerUi);
}

/** The document in both of its forms. */
interface DocumentTexts {
  readonly json: string;
  readonly yaml: string;
}

/** Writes the document at the first request for it: what that needs takes long to load. */
async function writeDocument(app: NestFastifyApplication): Promise<DocumentTexts> {
  // Asynchronously, so that other requests are answered meanwhile.
  await import('@nestjs/swagger');
  const document = createDocument(app);
  return {
    json: withLargeId(JSON.stringify(document)),
    yaml: withLargeId(dump(document, { skipInvalid: true, noRefs: true })),
  };
}

/**
 * Serves Swagger UI on a page of our own. The page of `@nestjs/swagger` has inline styles, which a
 * strict policy forbids.
 */
async function serveSwaggerUi(instance: FastifyInstance): Promise<void> {
  // Ranges are off: one that cannot be satisfied would be answered with 400.
  await instance.register(fastifyStatic, { root: UI, serve: false, acceptRanges: false });

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
