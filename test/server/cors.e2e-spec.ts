import { TestApplication, TOKEN } from '../support/application';
import { errorBodies } from '../support/error-bodies';
import { createRequest } from '../support/load';
import { exchange } from '../support/wire';

const ORIGIN = 'https://app.example.org';
const OTHER = 'https://other.example.org';
const CREATION = createRequest(1).text.replace(
  'Host: x',
  `Host: x\r\nOrigin: ${ORIGIN}\r\nConnection: close`,
);

describe('CORS', () => {
  const application = TestApplication.use({
    CORS_ORIGINS: `https://first.example.org ${ORIGIN}`,
  });

  const preflight = (origin: string, headers = {}, url = '/plants') =>
    application.app.inject({
      method: 'OPTIONS',
      url,
      headers: { origin, 'access-control-request-method': 'POST', ...headers },
    });

  it('responds to a preflight from an allowed origin without a token, and allows the requested headers', async () => {
    const requested = 'authorization,baggage,idempotency-key';
    const { statusCode, headers, body } = await preflight(ORIGIN, {
      'access-control-request-headers': requested,
    });

    expect([statusCode, body]).toEqual([204, '']);
    expect(headers).toMatchObject({
      'access-control-allow-origin': ORIGIN,
      'access-control-allow-methods': 'POST',
      'access-control-allow-headers': requested,
      'access-control-max-age': '600',
      vary: 'Origin',
      'x-request-id': expect.any(String) as string,
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    });
    expect(headers).not.toHaveProperty('access-control-allow-credentials');
  });

  it('returns 404 to a preflight of an unknown path', async () => {
    expect((await preflight(ORIGIN, {}, '/nothing')).json()).toEqual(errorBodies.notFound);
  });

  it.each([OTHER, 'null', `${ORIGIN}.evil.org`, ORIGIN.toUpperCase(), `${ORIGIN}:8443`, undefined])(
    'sends no Access-Control-Allow-Origin to %s, and varies the response by Origin',
    async (origin) => {
      const responses = [await preflight(origin ?? ''), await application.post('{}', { origin })];

      for (const { headers } of responses) {
        expect(headers).not.toHaveProperty('access-control-allow-origin');
        expect(headers.vary).toBe('Origin');
      }
    },
  );

  it.each([
    ['a success', 200, CREATION],
    ['a bad token', 401, CREATION.replace(TOKEN, 'x')],
    ['an unknown path', 404, CREATION.replace('/plants', '/plant')],
    ['a request with two Hosts', 400, CREATION.replace('Host: x', 'Host: x\r\nHost: x')],
  ])('lets an allowed origin read the response to %s', async (_what, status, request) => {
    const [response] = await exchange(application.url, request);

    const headers = { vary: 'Origin', 'access-control-allow-origin': ORIGIN };
    expect(response).toMatchObject({ status, headers });
    expect(response?.headers['access-control-expose-headers']).toMatch(
      /^Retry-After, WWW-Authenticate, X-Request-Id, Idempotent-Replayed,/,
    );
  });
});
