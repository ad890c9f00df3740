import { once } from 'node:events';
import fc from 'fast-check';
import { hashToken } from '../../src/plants/auth/bearer-token';
import type { ErrorBody } from '../../src/plants';
import { JSON_HEADERS, TestApplication, TOKEN } from '../support/application';
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

  /** RFC 6750 section 2.1, after the white space around a header's value is removed, RFC 9112 section 5.1. */
  const isCredential = (value: string): boolean =>
    /^[ \t]*[Bb][Ee][Aa][Rr][Ee][Rr] +a-good-token[ \t]*$/.test(value);

  const oneOf = (...pieces: string[]) => fc.constantFrom(...pieces);
  const anything = fc.string({
    unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)),
    maxLength: 4,
  });
  const mostly = (usual: fc.Arbitrary<string>, ...others: fc.Arbitrary<string>[]) =>
    fc.oneof({ weight: 9, arbitrary: usual }, ...others);
  const name = mostly(
    oneOf('Authorization', 'authorization', 'AUTHORIZATION'),
    oneOf('Authorization ', ' Authorization', 'X-Authorization', 'Autorization'),
  );
  const scheme = mostly(
    oneOf('Bearer', 'bearer', 'BEARER'),
    oneOf('', 'Basic', 'Bearers', 'Bear er', 'Token', '"Bearer"', 'Bearer,', 'Bearer Bearer'),
  );
  const separator = mostly(
    oneOf(' ', ' ', '  '),
    oneOf('', '\t', ' \t', ':', '=', ', ', '\r\n ', '\u00a0', '%20', '\0'),
  );
  const token = mostly(
    fc.constant(TOKEN),
    oneOf('', 'x', `${TOKEN}=`, `"${TOKEN}"`, TOKEN.toUpperCase(), `${TOKEN} ${TOKEN}`),
    oneOf(`${TOKEN},x`, `token="${TOKEN}"`, `=${TOKEN}`, `${TOKEN}\0`, `${TOKEN};q=1`),
    anything.map((end) => TOKEN + end),
    anything,
  );
  const space = mostly(oneOf('', ' '), oneOf('\t', '\r\n ', '\r', '\n', '\v'));
  const field = fc.tuple(name, space, scheme, separator, token, space);
  const fields = fc.oneof(
    { weight: 4, arbitrary: fc.array(field, { minLength: 1, maxLength: 1 }) },
    fc.array(field, { maxLength: 3 }),
  );

  it('accepts exactly one well-formed bearer credential, and nothing else', async () => {
    const seen = { admitted: 0, rejected: 0 };
    await fc.assert(
      fc.asyncProperty(fields, async (lines) => {
        const texts = lines.map(([fieldName, ...value]) => `${fieldName}:${value.join('')}`);

        const [, error] = await answerTo('POST /plants', texts);

        // A line break in a value ends the header, whatever precedes it.
        const sent = texts.join('\r\n').split('\r\n');
        const credentials = sent.filter((line) => /^authorization:/i.test(line));
        const [only = ''] = credentials;
        const good =
          credentials.length === 1 &&
          isCredential(only.slice(only.indexOf(':') + 1)) &&
          sent.every((line) => /^[\w-]+:[\t\x20-\x7e\x80-\xff]*$/.test(line));
        seen[good ? 'admitted' : 'rejected']++;
        expect(error === NOT_JSON).toBe(good);
      }),
      { numRuns: 500, verbose: true },
    );
    expect(seen.admitted).toBeGreaterThan(100);
    expect(seen.rejected).toBeGreaterThan(100);
  });

  // routes.e2e-spec.ts tests paths without a route.
  // prettier-ignore
  it.each([
    '/plants', '/%70lants', '/%70%6C%61%6e%74%73', '/plants?', 'http://elsewhere/plants',
    `/plants?access_token=${TOKEN}`, `/plants?authorization=Bearer%20${TOKEN}`,
  ])('returns 401 without a token for POST %s', async (target) => {
    expect(await answerTo(`POST ${target}`, [])).toEqual([401, errorNumbers.missingCredentials]);
  });

  it('ignores headers that override the method or path', async () => {
    const fields = ['X-HTTP-Method-Override: POST', 'X-Original-URL: /plants'];

    expect(await answerTo('GET /plants', fields)).toEqual([405, errorNumbers.methodNotAllowed]);
    expect(await answerTo('POST /docs', fields)).toEqual([405, errorNumbers.methodNotAllowed]);
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
  it('is accepted when its digest is configured', async () => {
    const headers = { authorization: `Bearer ${OTHER_TOKEN}` };

    expect((await application.post(FERN, headers)).statusCode).toBe(200);
  });

  // The property test above covers similar values.
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

  it.each(['a&access_token', '%61ccess_token=x', `?&access_token=${TOKEN}`])(
    'is rejected when the query contains a token too: %s',
    async (query) => {
      const request = { headers: JSON_HEADERS, payload: FERN };
      const url = `/plants?${query}`;
      const response = await application.app.inject({ method: 'POST', url, ...request });

      expect(response.statusCode).toBe(401);
      expect(response.json()).toEqual(errorBodies.tokenTwice);
    },
  );
});
