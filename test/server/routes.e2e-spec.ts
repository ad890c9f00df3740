import { AUTHORIZED, TestApplication, TOKEN } from '../support/application';
import { errorBodies } from '../support/error-bodies';
import { exchange } from '../support/wire';

const HEADERS = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
};

const application = TestApplication.use();

describe('paths and methods', () => {
  // prettier-ignore
  it.each([
    '/plant', '/plants/', '/plants/1', '//plants', '/PLANTS', '/plants%2f',
    '/:a(', '/:a((x+)+)',
  ])('return 404 for %s, with or without a token, whatever the body', async (url) => {
    for (const authorization of ['', `Bearer ${TOKEN}`]) {
      const headers = { authorization, 'content-type': '@' };
      const payload = '{'.repeat(2 ** 21);
      const response = await application.app.inject({ method: 'POST', url, headers, payload });

      expect(response.statusCode).toBe(404);
      expect(response.json()).toEqual(errorBodies.notFound);
    }
  });

  it.each([
    ['/', 302, 'docs'],
    ['/docs/', 308, '../docs'],
    ['/docs/index.html', 308, '../docs'],
  ])('redirect from %s to /docs', async (path, redirect, location) => {
    const url = new URL(path, application.url);
    const { status, headers } = await fetch(url, { redirect: 'manual' });

    expect([status, headers.get('location')]).toEqual([redirect, location]);
  });

  it.each(['GET /docs/nothing', 'GET /docs/.git', 'GET /docs/package.json'])(
    'return 404 for %s, where Swagger UI has no file',
    async (line) => {
      const [method, path = ''] = line.split(' ');
      const response = await fetch(new URL(path, application.url), { method });

      expect(response.status).toBe(404);
      expect(await response.json()).toEqual(errorBodies.notFound);
    },
  );

  // prettier-ignore
  it.each([
    ...['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY'].map((each) => `${each} /plants?x=1`),
    'GET http://x/plants', 'GET /pl%61nts',
  ])('return 405 for %s, with the allowed method', async (line) => {
    const request = `${line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;

    expect(await exchange(application.url, request)).toMatchObject([
      { status: 405, headers: { allow: 'POST' }, body: errorBodies.methodNotAllowed },
    ]);
  });
});

describe('security headers', () => {
  it.each(['GET /x', 'GET /health/live', 'GET /health/ready', 'GET /metrics', 'POST /plants'])(
    'are in the response to %s',
    async (line) => {
      const [method, path = ''] = line.split(' ');
      const response = await fetch(new URL(path, application.url), { method, headers: AUTHORIZED });

      expect(Object.fromEntries(response.headers)).toMatchObject(HEADERS);
    },
  );
});
