import { once } from 'node:events';
import { hashToken } from '../../src/plants/auth/token-list';
import type { ErrorBody } from '../../src/plants';
import { TestApplication, TOKEN } from '../support/application';
import { errorBodies, errorNumbers } from '../support/error-bodies';
import { exchange, openConnection } from '../support/wire';

/** Changes the last digit of a digest. */
const almost = (digest: string): string => digest.slice(0, 63) + (digest.endsWith('0') ? '1' : '0');
const OTHER_TOKEN = 'another/valid+token==';
const FERN = '{"id":1,"name":"Fern"}';

/** A body that is not JSON. A response that reports this shows that the guard has admitted the request. */
const BODY = '{';
const NOT_JSON = errorNumbers.empty;

const application = TestApplication.use({
  AUTH_TOKENS: `${TOKEN},sha256:${hashToken(OTHER_TOKEN)},sha256:${almost(hashToken('guess'))}`,
});

describe('the bearer guard on the wire', () => {
  /** Sends a request line and headers byte for byte. Returns the status and the error number of the response. */
  async function answerTo(line: string, fields: string[]): Promise<[number, number | undefined]> {
    // prettier-ignore
    const head = [
      `${line} HTTP/1.1`, 'Host: localhost', 'Connection: close',
      'Content-Type: application/json', `Content-Length: ${BODY.length}`, ...fields,
    ];
    const [response] = await exchange(
      application.url,
      Buffer.from(`${head.join('\r\n')}\r\n\r\n${BODY}`, 'latin1'),
    );
    return [response?.status ?? 0, (response?.body as ErrorBody | null)?.error];
  }

  it('returns 401 before the body has arrived', async () => {
    const socket = openConnection(application.url);
    socket.write('POST /plants HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n');

    const [chunk] = (await once(socket, 'data')) as [Buffer];

    expect(chunk.toString()).toMatch(/^HTTP\/1.1 401 /);
    socket.destroy();
  });

  const good = `Authorization: Bearer ${TOKEN}`;
  // prettier-ignore
  it.each([
    [good], [`AUTHORIZATION:bearer   ${TOKEN} \t`], [`authorization:\tBEARER ${TOKEN}`],
    [good, 'X-Authorization: Bearer x'], [`Authorization: Bearer ${OTHER_TOKEN}`],
  ])('admits %j', async (...fields) => {
    expect((await answerTo('POST /plants', fields))[1]).toBe(NOT_JSON);
  });

  // prettier-ignore
  it.each([
    [good, good], [good, 'authorization: Basic x'], ['Authorization: Basic x', good],
    [`X-${good}`], [`Authorization : Bearer ${TOKEN}`], [good, ` Bearer ${TOKEN}`],
    ...[
      '', 'Bearer', 'Bearer ', 'Bearer x', TOKEN, `Bearers ${TOKEN}`, `Bearer Bearer ${TOKEN}`,
      `Token ${TOKEN}`, `Bearer${TOKEN}`, `Bearer\t${TOKEN}`, `Bearer:${TOKEN}`, `Bearer=${TOKEN}`,
      `Bearer\u00a0${TOKEN}`, `Bearer%20${TOKEN}`, `Bearer, ${TOKEN}`, `"Bearer" ${TOKEN}`,
      `Bearer ${TOKEN}=`, `Bearer "${TOKEN}"`, `Bearer ${TOKEN.toUpperCase()}`, `Bearer =${TOKEN}`,
      `Bearer ${TOKEN} ${TOKEN}`, `Bearer ${TOKEN},x`, `Bearer token="${TOKEN}"`,
      `Bearer ${TOKEN};q=1`, `Bearer ${TOKEN}\0`, `Bearer ${TOKEN}\v`, `Bearer ${TOKEN}\xff`,
      `Bearer\r\n ${TOKEN}`, `Bearer ${TOKEN}\r`,
    ].map((value) => [`Authorization: ${value}`]),
  ])('rejects %j', async (...fields) => {
    const [status, error] = await answerTo('POST /plants', fields);

    expect([400, 401]).toContain(status);
    expect(error).not.toBe(NOT_JSON);
  });

  // routes.e2e-spec.ts tests paths without a route.
  // prettier-ignore
  it.each([
    '/plants', '/%70lants', '/%70%6C%61%6e%74%73', '/plants?', 'http://elsewhere/plants',
    `/plants?access_token=${TOKEN}`, `/plants?authorization=Bearer%20${TOKEN}`,
  ])('returns 401 without a token for POST %s', async (target) => {
    expect(await answerTo(`POST ${target}`, [])).toEqual([401, errorNumbers.missingCredentials]);
  });

  it('ignores tokens and caller names in other headers', async () => {
    // prettier-ignore
    const fields = [
      `X-Access-Token: ${TOKEN}`, `X-Auth-Token: ${TOKEN}`, `X-Api-Key: ${TOKEN}`,
      `Proxy-Authorization: Bearer ${TOKEN}`, `X-Forwarded-Authorization: Bearer ${TOKEN}`,
      `Cookie: access_token=${TOKEN}`, 'X-Forwarded-User: admin',
    ];

    expect(await answerTo('POST /plants', fields)).toEqual([401, errorNumbers.missingCredentials]);
  });
});

describe('a bearer token', () => {
  it.each<[string, string | string[] | undefined, ErrorBody]>([
    ['is missing', undefined, errorBodies.missingCredentials],
    ['is of another scheme', 'Basic YTpi', errorBodies.missingCredentials],
    ['is unknown', 'Bearer x', errorBodies.invalidToken],
    ['has a digest with another last digit', 'Bearer guess', errorBodies.invalidToken],
    ['is the digest itself', `Bearer ${hashToken(TOKEN)}`, errorBodies.invalidToken],
    ['is empty', 'Bearer', errorBodies.malformedCredentials],
    ['is sent twice', [`Bearer ${TOKEN}`, `Bearer ${TOKEN}`], errorBodies.malformedCredentials],
  ])('is rejected when it %s', async (_when, authorization, expected) => {
    const response = await application.post(FERN, { authorization });

    expect(response.statusCode).toBe(401);
    expect(response.json()).toEqual(expected);
    const reason = expected.error === errorNumbers.invalidToken ? ', error="invalid_token"' : '';
    expect(response.headers['www-authenticate']).toBe(`Bearer realm="plants"${reason}`);
  });

  it('is checked before the idempotency key, media type and body (which may be a form with a token)', async () => {
    const type = 'application/x-www-form-urlencoded';
    const headers = { authorization: undefined, 'content-type': type, 'idempotency-key': 'a b' };

    const response = await application.post(`access_token=${TOKEN}`, headers);

    expect(response.json()).toEqual(errorBodies.missingCredentials);
  });
});
