import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { TestApplication, TOKEN } from '../support/application';
import { TestBrowser } from '../support/browser';
import { errorBodies } from '../support/error-bodies';
import { useServiceHome } from '../support/service-process';
import { exchange } from '../support/wire';

const ORIGIN = 'https://app.example.org';
const OTHER = 'https://other.example.org';

describe('CORS', () => {
  const application = TestApplication.use({
    CORS_ORIGINS: `https://first.example.org ${ORIGIN}`,
  });

  const preflight = (origin: string) =>
    application.app.inject({
      method: 'OPTIONS',
      url: '/plants',
      headers: { origin, 'access-control-request-method': 'POST' },
    });

  it('answers a preflight of an allowed origin, without a token', async () => {
    const { statusCode, headers, body } = await preflight(ORIGIN);

    expect([statusCode, body]).toEqual([200, '']);
    expect(headers).toMatchObject({
      'access-control-allow-origin': ORIGIN,
      'access-control-allow-methods': 'POST',
      'access-control-max-age': '600',
      vary: 'Origin',
      'x-request-id': expect.any(String) as string,
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    });
    expect(String(headers['access-control-allow-headers']).toLowerCase().split(', ')).toEqual(
      expect.arrayContaining(['authorization', 'content-type', 'idempotency-key', 'traceparent']),
    );
    expect(headers).not.toHaveProperty('access-control-allow-credentials');
  });

  it.each([OTHER, 'null', `${ORIGIN}.evil.org`, ORIGIN.toUpperCase(), `${ORIGIN}:8443`, undefined])(
    'allows nothing to the origin %s, and keeps its answers apart in caches',
    async (origin) => {
      const answers = [await preflight(origin ?? ''), await application.post('{}', { origin })];

      for (const { headers } of answers) {
        expect(headers).not.toHaveProperty('access-control-allow-origin');
        expect(headers.vary).toBe('Origin');
      }
    },
  );

  it.each([
    ['a success', 200, '/plants', `Bearer ${TOKEN}`, '{"id":1,"name":"Fern"}'],
    ['a refused body', 400, '/plants', `Bearer ${TOKEN}`, '{'],
    ['a body beyond the limit', 400, '/plants', `Bearer ${TOKEN}`, 'x'.repeat(2 ** 20 + 1)],
    ['a bad token', 401, '/plants', 'Bearer x', '{}'],
    ['an unknown path', 404, '/plant', '', '{}'],
    ['what no router sees', 400, '/plants?<>', '', '{}'],
  ])('lets an allowed origin read the answer to %s', async (_what, status, path, token, body) => {
    const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nOrigin: ${ORIGIN}\r\nAuthorization: ${token}\r\n`;
    const fields = `Content-Type: application/json\r\nConnection: close\r\nContent-Length: ${body.length}`;

    const [answer] = await exchange(application.url, `${head}${fields}\r\n\r\n${body}`);

    const headers = { vary: 'Origin', 'access-control-allow-origin': ORIGIN };
    expect(answer).toMatchObject({ status, headers });
    expect(answer?.headers['access-control-expose-headers']?.split(', ')).toEqual(
      expect.arrayContaining([
        ...['Retry-After', 'WWW-Authenticate', 'X-Request-Id', 'Idempotent-Replayed'],
      ]),
    );
  });

  it('lets no other origin read what no router sees', async () => {
    const request = `GET /%zz HTTP/1.1\r\nHost: x\r\nOrigin: ${OTHER}\r\n\r\n`;

    const [answer] = await exchange(application.url, request);

    expect(answer).toMatchObject({ status: 400, headers: { vary: 'Origin' } });
    expect(answer?.headers).not.toHaveProperty('access-control-allow-origin');
  });

  it.each([
    ['/plants', 405, errorBodies.methodNotAllowed],
    ['/nothing', 404, errorBodies.notFound],
  ])('refuses OPTIONS %s that is no preflight', async (url, status, body) => {
    for (const headers of [{}, { origin: ORIGIN }, { 'access-control-request-method': 'POST' }]) {
      const response = await application.app.inject({ method: 'OPTIONS', url, headers });

      expect(response.statusCode).toBe(status);
      expect(response.json()).toEqual(body);
    }
  });

  it('keeps the redirect at / apart by origin too', async () => {
    const response = await application.app.inject({ url: '/', headers: { accept: 'text/html' } });

    expect(response.statusCode).toBe(302);
    expect(response.headers.vary).toBe('Accept, Origin');
  });
});

describe('a preflight of an origin that is not listed', () => {
  const home = useServiceHome();

  it.each([undefined, ORIGIN])(
    'is logged, at most once a minute, with CORS_ORIGINS=%s',
    async (list) => {
      const service = await home.start({ CORS_ORIGINS: list });
      const url = new URL('/plants', await service.url());
      const headers = { 'access-control-request-method': 'POST' };

      for (const origin of [ORIGIN, OTHER, OTHER].slice(list === undefined ? 1 : 0)) {
        await fetch(url, { method: 'OPTIONS', headers: { ...headers, origin } });
      }
      await service.end();

      const msg = `Pages of "${OTHER}" may not use the service: CORS_ORIGINS does not list it.`;
      const lines = service.lines.filter(({ context }) => context === 'CORS');
      expect(lines).toMatchObject([{ level: 40, msg }]);
    },
  );
});

describe('a page of another origin in Chromium', () => {
  const browser = TestBrowser.use();
  const pages = createServer((_request, response) => response.end('<!doctype html>'));
  let origin: string;
  beforeAll(async () => {
    await once(pages.listen(0, '127.0.0.1'), 'listening');
    origin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
  });
  afterAll(() => {
    pages.close();
  });

  /** What a script of a page sees of a creation. */
  async function create(CORS_ORIGINS: string | undefined): Promise<unknown> {
    const application = await TestApplication.start({ CORS_ORIGINS });
    const url = await application.listen();
    const page = await browser.newPage();
    try {
      await page.goto(origin);
      return await page.evaluate(
        async ([target, authorization]) => {
          const headers = { authorization, 'content-type': 'application/json' };
          const body = '{"id":1,"name":"Fern"}';
          try {
            const response = await fetch(target, { method: 'POST', headers, body });
            const id = response.headers.get('x-request-id');
            return { status: response.status, body: await response.json(), hasId: id !== null };
          } catch (error) {
            return String(error);
          }
        },
        [new URL('/plants', url).href, `Bearer ${TOKEN}`] as const,
      );
    } finally {
      await page.close();
      await application.stop();
    }
  }

  it('creates a plant when it is allowed', async () => {
    expect(await create(origin)).toEqual({ status: 200, body: { name: 'Fern' }, hasId: true });
  });

  it.each([undefined, OTHER])('is kept out when the list is %s', async (list) => {
    expect(await create(list)).toBe('TypeError: Failed to fetch');
  });
});
