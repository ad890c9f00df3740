import { TestApplication, TOKEN } from '../support/application';
import { exchange } from '../support/wire';

describe('security headers', () => {
  const application = TestApplication.use();

  const creation = (body: string) =>
    `POST /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`;

  it.each([
    ['a refused body', creation('{}'), 400],
    ['an unknown path', 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 404],
  ])('are on the answer to %s', async (_what, request, status) => {
    const [answer] = await exchange(application.url, request);

    expect(answer?.status).toBe(status);
    expect(answer?.headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    });
  });

  it.each(['/health/live', '/health/ready', '/metrics'])('are on the answer of %s', async (url) => {
    const response = await application.app.inject({
      url,
      headers: { authorization: `Bearer ${TOKEN}` },
    });

    expect(response.statusCode).toBe(200);
    expect(response.headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    });
  });

  it('are not on the answer to a creation, which no browser acts on', async () => {
    const [answer] = await exchange(application.url, creation('{"id":1,"name":"Fern"}'));

    expect(answer?.status).toBe(200);
    expect(Object.keys(answer?.headers ?? {})).toEqual([
      ...['connection', 'x-request-id', 'content-type', 'content-length', 'date'],
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
