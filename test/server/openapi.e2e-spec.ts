import * as fc from 'fast-check';
import { load } from 'js-yaml';
import { errorCatalogue } from '../../src/plants';
import { TestApplication } from '../support/application';
import { type Content, createPlant, document, validatorOf } from '../support/contract';
import { errorBodies } from '../support/error-bodies';

const schemas = document.components?.schemas ?? {};

/** The schema of each media type. */
function schemasOf(content: Content): Record<string, unknown> {
  return Object.fromEntries(Object.entries(content).map(([type, { schema }]) => [type, schema]));
}

/** A schema without what the specification does not have. */
function withoutAdditions(schema: unknown): unknown {
  return JSON.parse(
    JSON.stringify(schema, (key, value: unknown) =>
      ['example', 'pattern'].includes(key) ? undefined : value,
    ),
  );
}

describe('the OpenAPI document', () => {
  const application = TestApplication.use();

  const get = (url: string) => application.app.inject({ method: 'GET', url });

  it('is served as JSON, as it is committed', async () => {
    const response = await get('/openapi.json');

    expect(response.statusCode).toBe(200);
    expect(response.headers['content-type']).toMatch(/^application\/json/);
    expect(response.json()).toEqual(document);
  });

  it('is served as YAML', async () => {
    const response = await get('/openapi.yaml');

    expect(response.headers['content-type']).toMatch(/^text\/yaml/);
    expect(load(response.body)).toEqual(document);
  });

  describe('equals the specification:', () => {
    it('version and license', () => {
      const info = { title: 'Plant Store', version: '1.0.0', license: { name: 'MIT' } };

      expect(document).toMatchObject({ openapi: '3.1.0', info });
    });

    it('a bearer token secures the whole interface', () => {
      expect(document.components?.securitySchemes).toEqual({
        bearerAuth: { type: 'http', scheme: 'bearer', description: expect.any(String) as string },
      });
      expect(document.security).toEqual([{ bearerAuth: [] }]);
      expect(createPlant).toMatchObject({ security: [{ bearerAuth: [] }] });
    });

    it('one operation, POST /plants', () => {
      expect(Object.keys(document.paths)).toEqual(['/plants']);
      expect(Object.keys(document.paths['/plants'])).toEqual(['post']);
      expect(createPlant).toMatchObject({
        operationId: 'createPlant',
        summary: 'Creates a new plant in the store',
      });
    });

    it('its request body is required, JSON, a NewPlant', () => {
      expect(createPlant.requestBody.required).toBe(true);
      expect(schemasOf(createPlant.requestBody.content)).toEqual({
        'application/json': { $ref: '#/components/schemas/NewPlant' },
      });
    });

    it.each([
      ['200', 'Plant response', 'Plant'],
      ['400', 'Error', 'Error'],
    ])('status %s is "%s", JSON, of shape %s', (status, description, shape) => {
      const response = createPlant.responses[status];

      expect(response?.description).toBe(description);
      expect(schemasOf(response?.content ?? {})).toEqual({
        'application/json': { $ref: `#/components/schemas/${shape}` },
      });
    });

    it('three schemas, without further constraints', () => {
      const type = 'object';
      const text = (description: string) => ({ type: 'string', description });
      const name = text('The name of the plant');
      const tag = text('Tag that specifies the type of the plant');
      const integer = (format: string, description: string) => {
        return { type: 'integer', format, description };
      };
      const id = integer('int64', 'Identification number of the plant');
      const error = integer('int32', 'Numeric error value');
      const properties = { error, message: text('Error text') };

      expect(withoutAdditions(schemas)).toEqual({
        Plant: { type, properties: { name, tag }, required: ['name'] },
        NewPlant: {
          allOf: [
            { $ref: '#/components/schemas/Plant' },
            { type, properties: { id }, required: ['id'] },
          ],
        },
        Error: { type, properties, required: ['error', 'message'] },
      });
    });
  });

  describe('beyond the specification', () => {
    const additions = Object.entries(createPlant.responses).filter(
      ([status]) => !['200', '400'].includes(status),
    );

    it.each(['', 'Fern\n', '\0', 'Fe\0rn', '\n\0'])(
      'takes the text %j by its schema exactly when the service does',
      async (text) => {
        const plant = { id: 1, name: text };
        const tagged = { id: 2, name: 'Fern', tag: text };
        const isValid = validatorOf({ $ref: '#/components/schemas/NewPlant' });

        for (const each of [plant, tagged]) {
          const { statusCode } = await application.post(JSON.stringify(each));
          expect(isValid(each)).toBe(statusCode === 200);
        }
        application.store.removePlants();
      },
    );

    it('lists the statuses that a caller must distinguish, and the others as one, with headers', () => {
      const headers = Object.fromEntries(
        additions.map(([status, response]) => [status, Object.keys(response.headers ?? {})]),
      );

      expect(headers).toEqual({
        401: ['WWW-Authenticate'],
        403: ['WWW-Authenticate'],
        429: ['Retry-After'],
        503: ['Retry-After'],
        504: [],
        default: [],
      });
    });

    it('has one parameter, an optional header', () => {
      expect(createPlant.parameters).toMatchObject([
        { name: 'Idempotency-Key', in: 'header', required: false },
      ]);
    });

    it('takes an Idempotency-Key by its schema exactly when the service does', async () => {
      const isValid = validatorOf({ $ref: '#/paths/~1plants/post/parameters/0/schema' });
      // Often what is near the rules: quotation marks, backslashes, commas and spaces.
      const unit = fc.oneof(
        fc.constantFrom('"', '\\', ',', ' ', 'a'),
        fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 1 }),
      );
      const text = fc.oneof(
        { weight: 9, arbitrary: fc.string({ unit, maxLength: 6 }) },
        fc.constantFrom(
          ...[255, 256].flatMap((length) => [
            'a'.repeat(length),
            `"${'a'.repeat(length)}"`,
            `"${'\\\\'.repeat(length)}"`,
          ]),
        ),
      );
      const key = fc.oneof(
        text,
        text.map((content) => `"${content}"`),
      );
      await fc.assert(
        fc.asyncProperty(key, async (value) => {
          const { statusCode } = await application.post('{"id":1,"name":"Fern"}', {
            // An empty one would be left out here.
            'idempotency-key': value === '' ? [''] : value,
          });
          application.store.removePlants();

          expect(isValid(value)).toBe(statusCode === 200);
        }),
        { numRuns: 300 },
      );
    });

    it('has each error number with its meaning, and an example of it under its status', () => {
      const shown = Object.entries(createPlant.responses).flatMap(([status, { content }]) =>
        Object.keys(content['application/json']?.examples ?? {}).map((number) => [status, number]),
      );

      for (const { error, status, meaning } of Object.values(errorCatalogue)) {
        expect(document.info.description).toContain(`| ${error} | ${status} | ${meaning} |`);
        const places = shown.filter(([, number]) => number === String(error));
        const place = String(status) in createPlant.responses ? String(status) : 'default';
        expect(places).toEqual([404, 405].includes(status) ? [] : [[place, String(error)]]);
      }
    });
  });

  describe('its examples', () => {
    it('of errors equal the answers of the service', () => {
      const answered: { error: number }[] = Object.values(errorBodies);
      const shown = Object.values(createPlant.responses)
        .flatMap((response) => Object.values(response.content['application/json']?.examples ?? {}))
        .map(({ value }) => value as { error: number });

      const known = shown.filter(({ error }) => answered.some((body) => body.error === error));
      expect(known.length).toBeGreaterThan(10);
      expect(answered).toEqual(expect.arrayContaining(known));
    });

    it('of requests are accepted unchanged', async () => {
      const plants = Object.values(
        createPlant.requestBody.content['application/json']?.examples ?? {},
      ).map(({ value }) => value as { id: number });

      for (const plant of plants) {
        expect((await application.post(JSON.stringify(plant))).statusCode).toBe(200);
      }

      expect(application.store.plants().map(({ id }) => id)).toEqual(
        plants.map(({ id }) => BigInt(id)),
      );
    });
  });
});

describe('DOCS=false', () => {
  const application = TestApplication.use({ DOCS: 'false' });

  it.each(['/openapi.json', '/openapi.yaml', '/docs', '/docs/', '/docs/swagger-ui.css', '/'])(
    'removes %s',
    async (url) => {
      const response = await application.app.inject({ url, headers: { accept: 'text/html' } });

      expect(response.statusCode).toBe(404);
      expect(response.json()).toEqual(errorBodies.notFound);
    },
  );
});
