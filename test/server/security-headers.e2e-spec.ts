import { TestApplication, TOKEN } from '../support/application';

describe('security headers', () => {
  const application = TestApplication.use();

  it.each(['/', '/health/live', '/health/ready', '/metrics'])(
    'are on the answer of %s',
    async (path) => {
      const headers = { authorization: `Bearer ${TOKEN}` };
      const answer = await fetch(new URL(path, application.url), { headers });

      expect(Object.fromEntries(answer.headers)).toMatchObject({
        'x-content-type-options': 'nosniff',
        'cache-control': 'no-store',
        'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      });
    },
  );

  it('are on the answer to a refused creation', async () => {
    expect((await application.post('{}')).headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    });
  });

  it('are not on the answer to a creation, which no browser acts on', async () => {
    const { headers } = await application.post('{"id":1,"name":"Fern"}');

    expect(Object.keys(headers)).toEqual([
      ...['x-request-id', 'content-type', 'content-length', 'date', 'connection'],
    ]);
  });

  it('let Swagger UI load only its own files', async () => {
    const { headers } = await application.app.inject({ method: 'GET', url: '/docs' });

    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    });
  });

  it('let a browser reuse the files of Swagger UI while they are unchanged', async () => {
    const file = { method: 'GET', url: '/docs/swagger-ui.css' } as const;
    const { etag, 'cache-control': cacheControl } = (await application.app.inject(file)).headers;

    const again = await application.app.inject({ ...file, headers: { 'if-none-match': etag } });

    expect(cacheControl).toBe('public, max-age=0');
    expect(again.statusCode).toBe(304);
  });
});
