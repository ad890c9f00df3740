/** Adds a second controller to the service, as the documentation of Nest says. */
import { Module } from '@nestjs/common';
import type { OpenAPIObject } from '@nestjs/swagger';
import { AppModule } from '../../src/app.module';
import { PlantsRepository } from '../../src/plants';
import { StandardOutput } from '../../src/server/monitoring/standard-output';
import { AUTHORIZED, JSON_HEADERS, TestApplication } from '../support/application';
import { errorBodies, errorNumbers } from '../support/error-bodies';
import { readMetric } from '../support/metrics';
import { SeedsModule } from '../support/seeds';

// A second module beside PlantsModule, added as Nest's documentation says. The service needs no other change for it.
Module({ imports: [SeedsModule] })(AppModule);

type RequestBody = NonNullable<RequestInit['body']>;

const SEED = '{"id":1,"name":"Basil"}';
const LIMIT = 64 * 1024;

describe('a module beside PlantsModule', () => {
  const application = TestApplication.use();

  async function send(method: string, path: string, body?: RequestBody, headers: object = {}) {
    const url = new URL(path, application.url);
    const all = { ...(body === undefined ? AUTHORIZED : JSON_HEADERS), ...headers };
    const init = {
      method,
      headers: all,
      duplex: 'half' as const,
      ...(body !== undefined && { body }),
    };
    const response = await fetch(url, init);
    const text = await response.text();
    return { status: response.status, body: JSON.parse(text || 'null') as unknown };
  }

  const chunked = (text: string) => new Blob([text]).stream();
  const invalid = (message: string) => ({ error: errorNumbers.invalidRequest, message });

  it('gets bodies in @Body(), whatever the method', async () => {
    expect(await send('POST', '/seeds', SEED)).toMatchObject({ status: 201, body: { id: 1 } });
    expect(await send('POST', '/seeds', chunked('{"id":2,"name":"Dill","x":1}'))).toMatchObject({
      status: 201,
      body: { id: 2, name: 'Dill' },
    });
    const largest = JSON.stringify('x'.repeat(LIMIT - 2));
    for (const body of [SEED, largest]) {
      expect(await send('PUT', '/seeds/3', body)).toMatchObject({
        status: 200,
        body: { id: 3, seed: JSON.parse(body) as unknown },
      });
    }
    expect(await send('DELETE', '/seeds/2')).toEqual({ status: 204, body: null });
  });

  it('gets an undefined body from a request without one', async () => {
    const nothing = { hasBody: false };
    // `inject` sends no Content-Length.
    const route = { method: 'POST', url: '/seeds/1/water' } as const;

    expect((await application.app.inject({ ...route, headers: JSON_HEADERS })).json()).toEqual(
      nothing,
    );
    expect(await send('POST', route.url)).toEqual({ status: 202, body: nothing });
  });

  const notJson = {
    error: errorNumbers.notJson,
    message: expect.stringMatching(/^Not JSON: /) as string,
  };
  const tooLong = SEED.padEnd(LIMIT + 1);

  // prettier-ignore
  it.each<[string, { error: number }, () => RequestBody, object?]>([
    ['malformed JSON', notJson, () => '{'],
    ['a byte order mark', notJson, () => `\ufeff${SEED}`],
    ['no JSON', errorBodies.empty, () => ''],
    ['no JSON in chunks', errorBodies.empty, () => chunked('')],
    ['invalid UTF-8', errorBodies.notUtf8, () => Buffer.from([0x22, 0xff, 0x22])],
    ['another media type', errorBodies.mediaType, () => SEED, { 'content-type': 'text/plain' }],
    ['a content encoding', errorBodies.contentEncoding, () => SEED, { 'content-encoding': 'gzip' }],
    ['too many bytes', errorBodies.tooLarge, () => tooLong],
    ['too many bytes in chunks', errorBodies.tooLarge, () => chunked(tooLong)],
  ])('rejects a body with %s', async (_what, expected, createBody, headers = {}) => {
    for (const line of ['POST /seeds', 'PUT /seeds/1', 'PATCH /seeds/1']) {
      const [method = '', path = ''] = line.split(' ');
      const response = await send(method, path, createBody(), headers);
      expect({ line, ...response }).toMatchObject({ line, status: 400, body: expected });
    }
  });

  it('keeps the sentences of its pipes and methods in the Error body', async () => {
    await send('POST', '/seeds', '{"id":7,"name":"Mint"}');

    expect([
      await send('POST', '/seeds', '{"id":"1"}'),
      await send('GET', '/seeds/x'),
      await send('GET', '/seeds/99'),
      await send('POST', '/seeds', '{"id":7,"name":"Mint"}'),
      await send('GET', '/seeds/1/broken'),
    ]).toMatchObject([
      { status: 400, body: invalid('id must be an integer number; name must be a string') },
      { status: 400, body: invalid('Validation failed (numeric string is expected)') },
      { status: 404, body: { error: 40400, message: 'No seed 99' } },
      { status: 409, body: { error: 40900, message: 'Seed 7 already exists' } },
      { status: 500, body: errorBodies.internal },
    ]);
  });

  it('requires a token before it reads the body', async () => {
    const unauthorized = { status: 401, body: errorBodies.missingCredentials };

    expect(await send('POST', '/seeds', '{', { authorization: '' })).toMatchObject(unauthorized);
    expect(await send('GET', '/seeds/1', undefined, { authorization: '' })).toMatchObject(
      unauthorized,
    );
  });

  it('responds while too many plants are waiting to be stored', async () => {
    const repository = application.app.get(PlantsRepository, { strict: false });
    const canAccept = jest.spyOn(repository, 'canAccept').mockReturnValue(false);

    const responses = [
      await send('POST', '/plants', '{"id":1,"name":"Fern"}'),
      await send('PUT', '/seeds/1', SEED),
    ];
    canAccept.mockRestore();

    expect(responses).toMatchObject([
      { status: 503, body: errorBodies.unavailable },
      { status: 200 },
    ]);
  });

  it('counts its requests by their routes, and none of them as a create request', async () => {
    const created = 'plant_store_creations_total{outcome="created"}';
    const invalidOutcome = 'plant_store_creations_total{outcome="invalid"}';
    const failed =
      'http_request_duration_seconds_count{method="GET",route="/seeds/:id",status="400"}';
    const before = await readMetric(application.url, failed);

    await send('GET', '/seeds/x');
    await send('POST', '/seeds', '{');
    await send('POST', '/seeds', SEED.padEnd(LIMIT + 1));

    expect(await readMetric(application.url, failed)).toBe(before + 1);
    expect(await readMetric(application.url, created)).toBe(0);
    expect(await readMetric(application.url, invalidOutcome)).toBe(0);
  });

  it.each([
    ['PATCH /seeds', ['POST']],
    ['POST /seeds/5', ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE']],
    ['OPTIONS /seeds/5?x', ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE']],
    ['PUT /seeds/5/water', ['POST']],
  ])('gets 405 for %s, with the methods %p', async (line, methods) => {
    const [method = '', path = ''] = line.split(' ');
    const response = await fetch(new URL(path, application.url), { method });

    expect(response.status).toBe(405);
    expect(response.headers.get('allow')?.split(', ').sort()).toEqual([...methods].sort());
    expect(await response.json()).toEqual(errorBodies.methodNotAllowed);
  });

  it.each(['/seeds/', '/seeds/5/', '/seeds/5/x', '/seed'])('gets 404 for %s', async (path) => {
    expect(await send('GET', path)).toEqual({ status: 404, body: errorBodies.notFound });
  });

  it('is in the OpenAPI document, with the errors and the security of every route', async () => {
    const { paths } = (await application.app.inject('/openapi.json')).json<OpenAPIObject>();

    const ownPaths = Object.keys(paths).filter((path) => path.startsWith('/seeds'));
    expect(ownPaths.sort()).toEqual([
      '/seeds',
      '/seeds/{id}',
      '/seeds/{id}/broken',
      '/seeds/{id}/water',
    ]);
    const { operationId, security, responses } = paths['/seeds']?.post ?? {};
    expect({ operationId, security }).toEqual({
      operationId: 'createSeed',
      security: [{ bearerAuth: [] }],
    });
    expect(Object.keys(responses ?? {})).toEqual(
      expect.arrayContaining(['201', '400', '401', '403', '429', '503', 'default']),
    );
    expect(JSON.stringify(responses)).toContain(String(errorNumbers.bodyTooLarge));
    expect(JSON.stringify(responses)).not.toContain(String(errorNumbers.idTaken));
    expect(JSON.stringify(paths['/seeds/{id}']?.get)).not.toContain(
      String(errorNumbers.bodyTooLarge),
    );
  });

  it('leaves POST /plants as it is', async () => {
    const response = await application.post('{"id":9007199254740993,"name":"Fern"}');

    expect(response.statusCode).toBe(200);
    expect(application.store.plants()).toEqual([{ id: 9_007_199_254_740_993n, name: 'Fern' }]);
  });
});

describe('a module beside PlantsModule, with every setting', () => {
  const ORIGIN = 'https://garden.example';
  const application = TestApplication.use({
    AUTH_TOKENS: 'a-token-that-may-create scope=create,a-token-for-the-metrics scope=metrics',
    CORS_ORIGINS: ORIGIN,
    RATE_LIMIT: '2/h',
  });
  const get = (headers: Record<string, string>, method = 'GET') =>
    fetch(new URL('/seeds/1', application.url), {
      method,
      headers: { origin: ORIGIN, ...headers },
    });

  it('needs the scope of creating plants, unless its routes declare another one', async () => {
    const { status } = await get({ authorization: 'Bearer a-token-for-the-metrics' });

    expect(status).toBe(403);
  });

  it('is limited in its rate, and readable for the listed origins', async () => {
    const headers = { authorization: 'Bearer a-token-that-may-create' };

    const statuses = [await get(headers), await get(headers), await get(headers)];

    expect(statuses.map(({ status }) => status)).toEqual([404, 404, 429]);
    expect(statuses[0]?.headers.get('access-control-allow-origin')).toBe(ORIGIN);
  });

  it('gets preflights with the methods of the path', async () => {
    const preflight = await get({ 'access-control-request-method': 'PUT' }, 'OPTIONS');

    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-methods')).toContain('PUT');
  });
});

describe('the access log of a module beside PlantsModule', () => {
  const application = TestApplication.use({ ACCESS_LOG: 'true', LOG_LEVEL: 'info' });

  it('has one line for each request, whatever its outcome', async () => {
    const write = jest.spyOn(StandardOutput.prototype, 'write').mockReturnValue(undefined);

    const create = { method: 'POST', url: '/seeds', headers: JSON_HEADERS } as const;
    await application.app.inject({ ...create, payload: SEED });
    await application.app.inject({ ...create, payload: '{' });
    await application.app.inject({ url: '/seeds/1/leaf', headers: AUTHORIZED });
    await application.app.inject({ method: 'PATCH', url: '/seeds', headers: AUTHORIZED });

    const lines = write.mock.calls.map(([line]) => JSON.parse(line) as Record<string, unknown>);
    expect(lines.map(({ method, path, status, error }) => [method, path, status, error])).toEqual([
      ['POST', '/seeds', 201, undefined],
      ['POST', '/seeds', 400, errorNumbers.notJson],
      ['GET', '/seeds/1/leaf', 404, errorNumbers.notFound],
      ['PATCH', '/seeds', 405, errorNumbers.methodNotAllowed],
    ]);
  });
});
