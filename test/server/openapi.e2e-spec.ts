import { errorCatalogue } from '../../src/plants';
import { TestApplication } from '../support/application';
import { type Content, createPlantOperation, document, createValidator } from '../support/contract';
import { errorBodies } from '../support/error-bodies';
import { createExamples, type Example } from '../support/plant-rules';

/** Returns a part of the document without the additions to the specification. */
function specified(part: unknown): unknown {
  const additions = ['example', 'examples', 'pattern', 'headers'];
  const text = JSON.stringify(part, (key, value: unknown) =>
    additions.includes(key) ? undefined : value,
  );
  return JSON.parse(text);
}

const examplesIn = (content: Content) => content['application/json']?.examples ?? {};

describe('the OpenAPI document', () => {
  const application = TestApplication.use();

  it('is served at /openapi.json as committed by npm run openapi', async () => {
    const { headers, body } = await application.app.inject({ url: '/openapi.json' });

    expect(headers['content-type']).toBe('application/json; charset=utf-8');
    expect(JSON.parse(body)).toEqual(document);
  });

  describe('compared with the specification', () => {
    it('has the same version, license and bearer token for every operation', () => {
      const info = { title: 'Plant Store', version: '1.0.0', license: { name: 'MIT' } };
      const description = expect.any(String) as string;

      expect(document).toMatchObject({ openapi: '3.1.0', info });
      expect(document.security).toEqual([{ bearerAuth: [] }]);
      expect(document.components?.securitySchemes).toEqual({
        bearerAuth: { type: 'http', scheme: 'bearer', description },
      });
    });

    it('has the same operation, POST /plants, with request and responses', () => {
      const json = (shape: string) => {
        return { 'application/json': { schema: { $ref: `#/components/schemas/${shape}` } } };
      };
      const operation = {
        operationId: 'createPlant',
        summary: 'Creates a new plant in the store',
        security: [{ bearerAuth: [] }],
        requestBody: { required: true, content: json('NewPlant') },
        responses: expect.objectContaining({
          200: { description: 'Plant response', content: json('Plant') },
          400: { description: 'Error', content: json('Error') },
        }) as unknown,
      };

      expect(specified(document.paths)).toEqual({
        '/plants': { post: expect.objectContaining(operation) as unknown },
      });
    });

    it('has the same three schemas, without further constraints', () => {
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

      expect(specified(document.components?.schemas)).toEqual({
        Plant: { type, properties: { name, tag }, required: ['name'] },
        NewPlant: { type, properties: { id, name, tag }, required: ['name', 'id'] },
        Error: { type, properties, required: ['error', 'message'] },
      });
    });
  });

  describe('beyond the specification', () => {
    /** What JSON Schema cannot say: the range of ids, and that strings must be well-formed. */
    const isOutsideSchema = ({ json, property, isValid }: Example): boolean => {
      const { [property]: value } = JSON.parse(json) as Record<string, unknown>;
      if (typeof value === 'string') return !value.isWellFormed();
      return property === 'id' && !isValid && Number.isInteger(value);
    };

    // The service is compared with the contract in plant.dto.spec.
    it.each(createExamples().filter((example) => !isOutsideSchema(example)))(
      'accepts $json in the schema if and only if the contract accepts it',
      ({ json, isValid }) => {
        const validate = createValidator({ $ref: '#/components/schemas/NewPlant' });

        expect(validate(JSON.parse(json))).toBe(isValid);
      },
    );

    it.each([
      'abc',
      '"abc"',
      String.raw`"\"\\"`,
      '"a,b"',
      '',
      '""',
      'a,b',
      'a b',
      '"a',
      String.raw`"\a"`,
      ...[255, 256].flatMap((length) => ['a'.repeat(length), `"${'a'.repeat(length)}"`]),
    ])('accepts the key %j in the schema if and only if the service accepts it', async (key) => {
      const isValid = createValidator({ $ref: '#/paths/~1plants/post/parameters/0/schema' });
      // `inject` would omit an empty string.
      const headers = { 'idempotency-key': key === '' ? [''] : key };

      const { statusCode } = await application.post('{"id":1,"name":"Fern"}', headers);

      application.store.removePlants();
      expect(isValid(key)).toBe(statusCode === 200);
    });

    it('contains an example of each error number under its status', () => {
      const responses = Object.entries(createPlantOperation.responses);

      // Only routes whose pipes or methods throw exceptions of Nest return 40008.
      const { invalidRequest, ...others } = errorCatalogue;
      expect(JSON.stringify(responses)).not.toContain(String(invalidRequest.error));
      for (const { error, status } of Object.values(others)) {
        const places = responses.filter(([, { content }]) => error in examplesIn(content));
        const place = status in createPlantOperation.responses ? String(status) : 'default';
        expect(places.map(([at]) => at)).toEqual([404, 405].includes(status) ? [] : [place]);
      }
    });
  });

  it('declares the headers of the rate limit for all responses that can have them', () => {
    const responses = Object.entries(createPlantOperation.responses);
    const limited = responses.filter(([, { headers = {} }]) => 'RateLimit' in headers);

    expect(limited.map(([status]) => status)).toEqual([
      '200',
      '400',
      '429',
      '503',
      '504',
      'default',
    ]);
  });

  describe('its examples', () => {
    it('equal the error responses of the service', () => {
      const answered: { error: number }[] = Object.values(errorBodies);
      const shown = Object.values(createPlantOperation.responses)
        .flatMap(({ content }) => Object.values(examplesIn(content)))
        .map(({ value }) => value as { error: number });

      const known = shown.filter(({ error }) => answered.some((body) => body.error === error));
      expect(known.length).toBeGreaterThan(10);
      expect(answered).toEqual(expect.arrayContaining(known));
    });

    it('are requests that the service accepts unchanged', async () => {
      const examples = Object.values(examplesIn(createPlantOperation.requestBody.content));

      for (const { value } of examples) {
        expect((await application.post(JSON.stringify(value))).statusCode).toBe(200);
      }

      const stored = application.store.plants().map((each) => ({ ...each, id: Number(each.id) }));
      expect(stored).toEqual(examples.map(({ value }) => value));
    });
  });
});

describe('DOCS=false', () => {
  const application = TestApplication.use({ DOCS: 'false' });

  it.each(['/openapi.json', '/docs', '/docs/', '/docs/swagger-ui.css'])(
    'removes %s',
    async (url) => {
      const response = await application.app.inject({ url });

      expect(response.statusCode).toBe(404);
      expect(response.json()).toEqual(errorBodies.notFound);
    },
  );
});
