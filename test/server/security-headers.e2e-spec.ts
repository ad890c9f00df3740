import { AUTHORIZED, TestApplication } from '../support/application';

const HEADERS = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
};

describe('security headers', () => {
  const application = TestApplication.use();

  it.each([...['GET /', 'GET /health/live', 'GET /health/ready', 'GET /metrics', 'POST /plants']])(
    'are on the answer to %s',
    async (line) => {
      const [method, path = ''] = line.split(' ');
      const answer = await fetch(new URL(path, application.url), { method, headers: AUTHORIZED });

      expect(Object.fromEntries(answer.headers)).toMatchObject(HEADERS);
    },
  );

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
});
