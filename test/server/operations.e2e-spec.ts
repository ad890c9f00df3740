/** Tests health, metrics and limits, as an operator sees them. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Socket } from 'node:net';
import { OutcomeUnknownError, PlantsRepository } from '../../src/plants';
import { AUTHORIZED, TestApplication, TOKEN } from '../support/application';
import { errorBodies, errorNumbers } from '../support/error-bodies';
import { useFolder } from '../support/folder';
import { createRequest } from '../support/load';
import { readMetric } from '../support/metrics';
import { until } from '../support/until';
import { exchange, openConnection } from '../support/wire';

/** A request that is rejected before routing. */
const UNROUTABLE = 'GET /%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';

const BROKEN_CHUNK = 'Transfer-Encoding: chunked\r\n\r\nxyz\r\n';

describe('a service', () => {
  let application: TestApplication;
  beforeEach(async () => {
    application = await TestApplication.start();
  });
  afterEach(() => application.stop());

  const get = (url: string, headers = {}) => application.app.inject({ url, headers });
  const newPlant = (id: number) => application.post(`{"id":${id},"name":"Fern"}`);

  it.each(['/health/live', '/health/ready'])('returns 200 for %s without a token', async (url) => {
    const { statusCode, body, headers } = await get(url);

    expect([statusCode, body]).toEqual([200, '{"status":"ok"}']);
    expect(headers['content-type']).toBe('application/json; charset=utf-8');
  });

  it('exports metrics as Prometheus text: create requests by outcome, errors, requests and commits', async () => {
    const url = await application.listen();
    // The body ends in the middle when the connection closes, which must not count once more.
    await exchange(url, createRequest(4).text.replace(/Content-Length.*/s, BROKEN_CHUNK));
    await newPlant(1);
    await newPlant(1);
    await application.post('{');
    for (const path of ['/a', '/b', '/plants/7']) await get(path);
    await exchange(url, UNROUTABLE);

    const { headers, body } = await get('/metrics', AUTHORIZED);

    expect(headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(body.split('\n')).toEqual(
      expect.arrayContaining([
        'plant_store_creations_total{outcome="created"} 1',
        'plant_store_creations_total{outcome="taken"} 1',
        'plant_store_creations_total{outcome="invalid"} 1',
        'plant_store_creations_total{outcome="unavailable"} 0',
        `plant_store_errors_total{error="${errorNumbers.malformedRequest}"} 2`,
        `plant_store_errors_total{error="${errorNumbers.empty}"} 1`,
        `plant_store_errors_total{error="${errorNumbers.notFound}"} 3`,
        'http_request_duration_seconds_count{method="POST",route="/plants",status="200"} 1',
        'http_request_duration_seconds_bucket{le="+Inf",method="POST",route="/plants",status="200"} 1',
        'http_request_duration_seconds_count{method="any",route="none",status="404"} 3',
        'http_request_duration_seconds_count{method="any",route="none",status="400"} 1',
        'plant_store_batch_size_bucket{le="1"} 2',
        'plant_store_commit_duration_seconds_count 2',
      ]),
    );
    expect(body).not.toContain('/plants/7');
  });

  it.each([
    ['created', undefined],
    ['unknown', new OutcomeUnknownError()],
  ])(
    'counts a create request with the outcome %s whose client has left',
    async (outcome, error) => {
      const repository = application.app.get(PlantsRepository, { strict: false });
      const insert = repository.insert.bind(repository);
      const url = await application.listen();
      const client = openConnection(url);
      const [connection] = (await once(application.app.getHttpServer(), 'connection')) as [Socket];
      jest.spyOn(repository, 'insert').mockImplementation(async (plant) => {
        client.resetAndDestroy();
        // `once` would reject, because the connection also emits an error.
        await new Promise((resolve) => connection.on('close', resolve));
        if (error) throw error;
        return insert(plant);
      });
      client.write(createRequest(1).text);

      const read = () => readMetric(url, `plant_store_creations_total{outcome="${outcome}"}`);
      await until(async () => (await read()) > 0);
      expect(await read()).toBe(1);
    },
  );

  it('does not count the plants of another application in the same process', async () => {
    const other = await TestApplication.start();
    await other.post('{"id":1,"name":"Fern"}');
    await other.stop();

    const { body } = await get('/metrics', AUTHORIZED);

    expect(body).toContain('\nplant_store_batch_size_count 0\n');
    expect(body).toContain('\nplant_store_creations_total{outcome="created"} 0\n');
  });

  it('rejects a create request without reading its token or body while too many plants are waiting', async () => {
    const repository = application.app.get(PlantsRepository, { strict: false });
    jest.spyOn(repository, 'canAccept').mockReturnValue(false);
    const url = await application.listen();
    const head = 'POST /plants?x HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n';

    const responses = await exchange(url, `${head}\r\n${head}Connection: close\r\n\r\n`);

    const headers = { 'retry-after': '1', 'x-request-id': expect.any(String) as string };
    const rejection = { status: 503, body: errorBodies.unavailable, headers };
    expect(responses).toMatchObject([rejection, rejection]);
  });
});

describe('the rate limit', () => {
  const AUTH_TOKENS_FILE = join(useFolder(), 'tokens.txt');
  let application: TestApplication;
  beforeEach(async () => {
    writeFileSync(AUTH_TOKENS_FILE, 'first ci\nsecond ci\n');
    application = await TestApplication.start({ AUTH_TOKENS_FILE, RATE_LIMIT: '2/h' });
  });
  afterEach(() => application.stop());

  const post = (id: number, token: string) =>
    application.post(`{"id":${id},"name":"Fern"}`, { authorization: `Bearer ${token}` });

  it('rejects further requests of a caller with any of its tokens, and reports the remaining quota', async () => {
    const responses = [await post(1, 'first'), await post(2, 'second'), await post(3, 'first')];

    expect(responses.map(({ statusCode }) => statusCode)).toEqual([200, 200, 429]);
    expect(responses[2]?.json()).toEqual(errorBodies.tooManyRequests);
    // The remaining seconds of the hour.
    expect(responses[2]?.headers['retry-after']).toMatch(/^3\d{3}$/);
    for (const [at, { headers }] of responses.entries()) {
      expect(headers['ratelimit-policy']).toBe('"caller";q=2;w=3600');
      expect(headers.ratelimit).toMatch(RegExp(`^"caller";r=${[1, 0, 0][at]};t=3\\d{3}$`));
    }
    // Other callers and metrics are not limited.
    const headers = { authorization: 'Bearer first' };
    expect((await post(4, TOKEN)).statusCode).toBe(200);
    expect((await application.app.inject({ url: '/metrics', headers })).statusCode).toBe(200);
  });
});

describe('a service with other limits', () => {
  let application: TestApplication;
  let url: URL;
  beforeEach(async () => {
    const limits = { KEEP_ALIVE_TIMEOUT: '1s', SHUTDOWN_TIMEOUT: '1s', HEADERS_LIMIT: '1KiB' };
    application = await TestApplication.start(limits);
    url = await application.listen();
  });
  afterEach(() => application.stop());

  it('closes a connection that is idle for longer than KEEP_ALIVE_TIMEOUT', async () => {
    // The service closes the connection, and announces the timeout in the response.
    expect(await exchange(url, 'GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n')).toMatchObject([
      { status: 200, headers: { 'keep-alive': 'timeout=1' } },
    ]);
  });

  it('disconnects a client whose request never ends when the service stops', async () => {
    const responses = exchange(url, createRequest(1).text.slice(0, -1));
    await once(application.app.getHttpServer(), 'request');

    await application.app.close();

    expect(await responses).toEqual([]);
  });

  it.each([
    [900, { status: 200 }],
    [1024, { status: 431, body: errorBodies.headersTooLarge }],
  ])('limits headers by HEADERS_LIMIT: a header of %d bytes', async (size, response) => {
    const request = `GET /health/live HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(size)}\r\n\r\n`;

    expect(await exchange(url, request)).toMatchObject([response]);
  });
});
