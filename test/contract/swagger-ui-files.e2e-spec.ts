import { TestApplication } from '../support/application';

describe('the files of Swagger UI', () => {
  const application = TestApplication.use();

  const get = (url: string) => application.app.inject({ method: 'GET', url });

  it.each([
    ['/docs', 'text/html; charset=utf-8'],
    ['/docs/docs.css', 'text/css; charset=utf-8'],
    ['/docs/docs.js', 'application/javascript; charset=utf-8'],
    ['/docs/favicon.svg', 'image/svg+xml'],
    ['/docs/swagger-ui-bundle.js', 'application/javascript; charset=utf-8'],
    ['/docs/swagger-ui.css', 'text/css; charset=utf-8'],
  ])('include %s as %s', async (url, type) => {
    const response = await get(url);

    expect(response.statusCode).toBe(200);
    expect(response.headers['content-type']).toBe(type);
    expect(response.rawPayload.length).toBeGreaterThan(0);
  });

  it.each([
    { 'if-match': '"a"' },
    { 'if-unmodified-since': 'Thu, 01 Jan 1970 00:00:00 GMT' },
    { range: 'bytes=99999999-' },
  ])('are sent whole, whatever precondition or range a request has: %j', async (headers) => {
    const { statusCode } = await application.app.inject({ url: '/docs/docs.css', headers });

    expect(statusCode).toBe(200);
  });

  it('include a redirect from /docs/ to the page', async () => {
    const response = await get('/docs/');

    expect([response.statusCode, response.headers.location]).toEqual([308, '../docs']);
  });

  it.each(['index.html', 'package.json', '../package.json', '%2e%2e/main.js'])(
    'do not include %s',
    async (url) => {
      expect((await get(`/docs/${url}`)).statusCode).toBe(404);
    },
  );
});
