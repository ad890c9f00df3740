import fc from 'fast-check';
import { hashToken } from '../../src/plants/auth/bearer-token';
import type { ErrorBody } from '../../src/plants';
import { TestApplication, TOKEN } from '../support/application';
import { errorBodies } from '../support/error-bodies';
import { exchange } from '../support/wire';

/** A digest that differs in its last digit. */
const almost = (digest: string): string => digest.slice(0, 63) + (digest.endsWith('0') ? '1' : '0');
const OTHER_TOKEN = 'another/valid+token==';

/** Not JSON: who is told so has passed the guard. */
const BODY = '{';
const NOT_JSON = 40001;

describe('the guard, on the wire,', () => {
  let application: TestApplication;
  let url: URL;
  beforeAll(async () => {
    application = await TestApplication.start();
    url = await application.listen();
  });
  afterAll(() => application.stop());

  /** What a request is answered that has a line and fields as given, byte for byte. */
  async function answerTo(line: string, fields: string[]): Promise<[number, number | undefined]> {
    const head = [
      ...[`${line} HTTP/1.1`, 'Host: localhost', 'Connection: close'],
      ...['Content-Type: application/json', `Content-Length: ${BODY.length}`, ...fields],
    ];
    const [answer] = await exchange(
      url,
      Buffer.from(`${head.join('\r\n')}\r\n\r\n${BODY}`, 'latin1'),
    );
    return [answer?.status ?? 0, (answer?.body as ErrorBody | null)?.error];
  }

  /** RFC 6750 section 2.1, after the white space around a field's value is gone, RFC 9112 section 5.1. */
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

  it('admits exactly one well-formed bearer credential, and nothing else', async () => {
    const seen = { admitted: 0, refused: 0 };
    await fc.assert(
      fc.asyncProperty(fields, async (lines) => {
        const texts = lines.map(([fieldName, ...value]) => `${fieldName}:${value.join('')}`);

        const [, error] = await answerTo('POST /plants', texts);

        // A line feed in a value ends the field, whatever stood before.
        const sent = texts.join('\r\n').split('\r\n');
        const credentials = sent.filter((line) => /^authorization:/i.test(line));
        const [only = ''] = credentials;
        const good =
          credentials.length === 1 &&
          isCredential(only.slice(only.indexOf(':') + 1)) &&
          sent.every((line) => /^[\w-]+:[\t\x20-\x7e\x80-\xff]*$/.test(line));
        seen[good ? 'admitted' : 'refused']++;
        expect(error === NOT_JSON).toBe(good);
      }),
      { numRuns: 500, verbose: true },
    );
    expect(seen.admitted).toBeGreaterThan(100);
    expect(seen.refused).toBeGreaterThan(100);
  });

  it.each<[number, number | undefined, string[]]>([
    [401, 40100, ['POST /plants', 'POST /%70lants', 'POST /%70%6C%61%6e%74%73', 'POST /plants?']],
    [401, 40100, ['POST http://localhost/plants', 'POST http://elsewhere/plants']],
    [401, 40100, [`POST /plants?access_token=${TOKEN}`]],
    [401, 40100, [`POST /plants?authorization=Bearer%20${TOKEN}`]],
    [404, 40400, ['POST //plants', 'POST ///plants', 'POST /plants/', 'POST /plants//']],
    [404, 40400, ['POST /plants%2f', 'POST /%2fplants', 'POST /%2570lants', 'POST /PLANTS']],
    [404, 40400, ['POST /./plants', 'POST /health/../plants', 'POST /health/%2e%2e/plants']],
    [404, 40400, ['POST /health/..;/plants', 'POST /plants/.', 'POST /plants%00']],
    [404, 40400, ['POST /plants%20', 'POST /plants.json']],
    [400, 40000, ['POST /plants#fragment', `POST http://x:${TOKEN}@localhost/plants`]],
    [400, 40000, ['POST /\\plants', 'POST plants', 'POST\t/plants']],
    [405, 40500, ['GET /plants', 'PUT /plants', 'OPTIONS /plants', 'TRACE /plants']],
    [405, undefined, ['HEAD /plants']],
    [501, 50100, ['post /plants']],
  ])('answers %i %s without a token by any of %j', async (status, error, lines) => {
    for (const line of lines) {
      expect([line, ...(await answerTo(line, []))]).toEqual([line, status, error]);
    }
  });

  it.each([
    ...['X-HTTP-Method-Override: POST', 'X-HTTP-Method: POST', 'X-Method-Override: POST'],
    ...['X-Original-URL: /plants', 'X-Rewrite-URL: /plants', 'X-Forwarded-Prefix: /plants'],
  ])('reads neither method nor path from %s', async (field) => {
    expect(await answerTo('GET /plants', [field])).toEqual([405, 40500]);
    expect(await answerTo('POST /docs', [field])).toEqual([405, 40500]);
  });

  it.each([
    ...[`X-Access-Token: ${TOKEN}`, `X-Auth-Token: ${TOKEN}`, `X-Api-Key: ${TOKEN}`],
    ...[`Cookie: access_token=${TOKEN}; Authorization=Bearer ${TOKEN}`, 'X-Forwarded-User: admin'],
    ...[`Proxy-Authorization: Bearer ${TOKEN}`, `X-Forwarded-Authorization: Bearer ${TOKEN}`],
    `Sec-WebSocket-Protocol: Bearer, ${TOKEN}`,
  ])('reads no token and no caller from %s', async (field) => {
    expect(await answerTo('POST /plants', [field])).toEqual([401, 40100]);
  });

  it('reads no token from a trailer', async () => {
    const request = [
      ...['POST /plants HTTP/1.1', 'Host: localhost', 'Connection: close'],
      ...['Transfer-Encoding: chunked', 'Trailer: Authorization', ''],
      ...['1', BODY, '0', `Authorization: Bearer ${TOKEN}`, '', ''],
    ];

    expect(await exchange(url, request.join('\r\n'))).toMatchObject([{ status: 401 }]);
  });
});

describe('the bearer token of a request', () => {
  let application: TestApplication;
  let nextId = 1;
  beforeAll(async () => {
    application = await TestApplication.start({
      AUTH_TOKENS: `${TOKEN},sha256:${hashToken(OTHER_TOKEN)},sha256:${almost(hashToken('guess'))}`,
    });
  });
  afterAll(() => application.stop());

  const post = (authorization: string | string[] | undefined, body = newPlant()) =>
    application.post(body, { authorization });
  const newPlant = () => `{"id":${nextId++},"name":"Fern"}`;

  it.each([
    ['as configured', `Bearer ${TOKEN}`],
    ['as configured by its digest', `Bearer ${OTHER_TOKEN}`],
    ['with the scheme in another case', `bEARER ${TOKEN}`],
    ['after several spaces', `Bearer   ${TOKEN}`],
  ])('is valid %s', async (_how, authorization) => {
    expect((await post(authorization)).statusCode).toBe(200);
  });

  it.each<[string, string | string[] | undefined]>([
    ['absent', undefined],
    ['of another scheme', 'Basic YTpi'],
    ['of a scheme that begins alike', `Bearers ${TOKEN}`],
    ['the token alone', TOKEN],
  ])('is missing when the credentials are %s', async (_what, authorization) => {
    const response = await post(authorization);

    expect(response.statusCode).toBe(401);
    expect(response.json()).toEqual(errorBodies.missingCredentials);
    expect(response.headers['www-authenticate']).toBe('Bearer realm="plants"');
  });

  it.each<[string, string | string[], ErrorBody]>([
    ['unknown', 'Bearer x', errorBodies.invalidToken],
    ['a prefix', `Bearer ${TOKEN.slice(0, -1)}`, errorBodies.invalidToken],
    ['in the list but for the last digit of its digest', 'Bearer guess', errorBodies.invalidToken],
    ['longer', `Bearer ${TOKEN}x`, errorBodies.invalidToken],
    ['in another case', `Bearer ${TOKEN.toUpperCase()}`, errorBodies.invalidToken],
    ['the digest itself', `Bearer ${hashToken(TOKEN)}`, errorBodies.invalidToken],
    ['empty', 'Bearer', errorBodies.malformedCredentials],
    ['after a tab', `Bearer\t${TOKEN}`, errorBodies.malformedCredentials],
    ['a list', `Bearer ${TOKEN}, Bearer ${TOKEN}`, errorBodies.malformedCredentials],
    ['quoted', `Bearer "${TOKEN}"`, errorBodies.malformedCredentials],
    ['of invalid characters', 'Bearer tök€n', errorBodies.malformedCredentials],
    ['sent twice', [`Bearer ${TOKEN}`, `Bearer ${TOKEN}`], errorBodies.malformedCredentials],
    ['one of two', ['Basic YTpi', `Bearer ${TOKEN}`], errorBodies.malformedCredentials],
  ])('is invalid %s', async (_what, authorization, expected) => {
    const response = await post(authorization);

    expect(response.statusCode).toBe(401);
    expect(response.json()).toEqual(expected);
    expect(response.headers['www-authenticate']).toBe(
      'Bearer realm="plants", error="invalid_token"',
    );
  });

  it.each([
    ['not JSON', '{', 'application/json'],
    ['of a malformed media type', '{}', '@@@'],
    ['a plant', `{"id":0,"name":"Fern","access_token":"${TOKEN}"}`, 'application/json'],
    ['a form', `access_token=${TOKEN}`, 'application/x-www-form-urlencoded'],
    ['a form in parts', `--x\r\n\r\n${TOKEN}\r\n--x--`, 'multipart/form-data; boundary=x'],
  ])('is checked before a body that is %s', async (_what, body, type) => {
    const response = await application.post(body, {
      authorization: undefined,
      'content-type': type,
    });

    expect(response.json()).toEqual(errorBodies.missingCredentials);
  });

  it.each(['access_token=x', 'a&access_token', '%61ccess_token=x', `?&access_token=${TOKEN}`])(
    'is invalid when the query has one too: %s',
    async (query) => {
      const response = await application.app.inject({
        method: 'POST',
        url: `/plants?${query}`,
        headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
        payload: newPlant(),
      });

      expect(response.statusCode).toBe(401);
      expect(response.json()).toEqual(errorBodies.tokenTwice);
    },
  );
});
