import { once } from 'node:events';
import { hashToken } from '../../src/plants/auth/token-list';
import type { ErrorBody } from '../../src/plants';
import { TestApplication, TOKEN } from '../support/application';
import { errorBodies, errorNumbers } from '../support/error-bodies';
import { openConnection } from '../support/wire';

/** Changes the last digit of a digest. */
const almost = (digest: string): string => digest.slice(0, 63) + (digest.endsWith('0') ? '1' : '0');
const OTHER_TOKEN = 'another/valid+token==';
const GOOD = `Bearer ${TOKEN}`;

describe('a bearer token', () => {
  const application = TestApplication.use({
    AUTH_TOKENS: `${TOKEN},sha256:${hashToken(OTHER_TOKEN)},sha256:${almost(hashToken('guess'))}`,
  });

  it.each([GOOD, `bearer   ${TOKEN}`, `BEARER ${OTHER_TOKEN}`])(
    'is accepted: %j',
    async (authorization) => {
      // The guard has admitted the request if its body is parsed.
      const response = await application.post('{', { authorization });

      expect(response.json()).toMatchObject({ error: errorNumbers.empty });
    },
  );

  // prettier-ignore
  it.each<[ErrorBody, (string | string[] | undefined)[]]>([
    [errorBodies.missingCredentials, [
      undefined, '', 'Basic YTpi', `Token ${TOKEN}`, TOKEN, `Bearers ${TOKEN}`, `Bearer${TOKEN}`,
      `Bearer:${TOKEN}`, `Bearer=${TOKEN}`, `Bearer%20${TOKEN}`, `Bearer, ${TOKEN}`, `"Bearer" ${TOKEN}`,
    ]],
    [errorBodies.malformedCredentials, [
      'Bearer', [GOOD, GOOD], [GOOD, 'Basic x'], ['Basic x', GOOD], `Bearer ${GOOD}`,
      `Bearer\t${TOKEN}`, `Bearer "${TOKEN}"`, `Bearer token="${TOKEN}"`, `Bearer =${TOKEN}`,
      `Bearer ${TOKEN} ${TOKEN}`, `Bearer ${TOKEN},x`, `Bearer ${TOKEN};q=1`, `Bearer ${TOKEN}\xff`,
    ]],
    [errorBodies.invalidToken, [
      'Bearer x', `Bearer ${TOKEN}=`, `Bearer ${TOKEN.toUpperCase()}`, `Bearer ${hashToken(TOKEN)}`,
      'Bearer guess',
    ]],
  ])('is rejected with %j: %j', async (expected, values) => {
    const reason = expected.error === errorNumbers.invalidToken ? ', error="invalid_token"' : '';
    for (const authorization of values) {
      const response = await application.post('{', { authorization });

      expect([authorization, response.json()]).toEqual([authorization, expected]);
      expect(response.statusCode).toBe(401);
      expect(response.headers['www-authenticate']).toBe(`Bearer realm="plants"${reason}`);
    }
  });

  it('is read from the Authorization header only, and before the rest of the request', async () => {
    // prettier-ignore
    const headers = {
      'x-access-token': TOKEN, 'x-api-key': TOKEN, cookie: `access_token=${TOKEN}`,
      'proxy-authorization': GOOD, 'x-forwarded-authorization': GOOD, 'x-forwarded-user': 'admin',
      'content-type': 'application/x-www-form-urlencoded', 'idempotency-key': 'a b',
    };
    const url = `/plants?access_token=${TOKEN}`;
    const payload = `access_token=${TOKEN}`;
    const response = await application.app.inject({ method: 'POST', url, headers, payload });

    expect(response.json()).toEqual(errorBodies.missingCredentials);
  });

  it('is rejected when it is sent twice, before the body has arrived', async () => {
    const socket = openConnection(application.url);
    const headers = ['Host: x', `Authorization: ${GOOD}`, 'Authorization: x', 'Content-Length: 9'];
    socket.write(`POST /plants HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`);

    const [chunk] = (await once(socket, 'data')) as [Buffer];

    expect(chunk.toString()).toContain(JSON.stringify(errorBodies.malformedCredentials));
    socket.destroy();
  });
});
