import { createPublicKey, createSign, generateKeyPairSync, sign as signBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Logger } from '@nestjs/common';
import { CompactEncrypt, decodeJwt, importJWK, type JWTHeaderParameters, SignJWT } from 'jose';
import type { ErrorBody } from '../../src/plants';
import { TestApplication, TOKEN } from '../support/application';
import { pass, releaseClock, stopClock } from '../support/clock';
import { errorBodies } from '../support/error-bodies';
import {
  AUDIENCE,
  type Draft,
  makeKey,
  OpenIdProvider,
  publicPart,
  type SigningKey,
} from '../support/openid-provider';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
/** The minimum time between two fetches of keys. */
const COOLDOWN = 10 * SECOND;
const HEADER = { alg: 'ES256', typ: 'at+jwt' };
const HMAC = { alg: 'HS256' };

let application: TestApplication;
let nextId = 1;
/** Servers that run until the end of the test. */
const servers: Server[] = [];

async function post(token: string) {
  return application.post(`{"id":${nextId++},"name":"Fern"}`, { authorization: `Bearer ${token}` });
}

async function statusOf(token: string): Promise<number> {
  return (await post(token)).statusCode;
}

async function expectRefusal(token: string, expected: ErrorBody = errorBodies.invalidToken) {
  const response = await post(token);

  expect(response.json()).toEqual(expected);
  expect(response.statusCode).toBe(401);
  expect(response.headers['www-authenticate']).toBe('Bearer realm="plants", error="invalid_token"');
}

const wrongClaim = (claim: string): ErrorBody => ({
  error: 40101,
  message: `The token's claim ${claim} is missing or invalid.`,
});

const now = (): number => Math.floor(Date.now() / SECOND);
const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Signs any payload and header, as an attacker or an unusual issuer would. */
async function sign(
  payload: Record<string, unknown>,
  header: JWTHeaderParameters,
  key: SigningKey | Uint8Array,
): Promise<string> {
  const crit = Object.fromEntries((header.crit ?? []).map((name) => [name, true]));
  return new SignJWT(payload)
    .setProtectedHeader(header)
    .sign(key instanceof Uint8Array ? key : await importJWK(key), { crit });
}

beforeEach(() => {
  stopClock();
});
afterEach(async () => {
  releaseClock();
  jest.restoreAllMocks();
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  }
});

describe('a JWT', () => {
  const key = makeKey('ES256');
  let provider: OpenIdProvider;
  beforeAll(async () => {
    provider = await OpenIdProvider.start(key);
    application = await TestApplication.start({
      AUTH_ISSUER: provider.issuer,
      AUTH_AUDIENCE: `https://first.example ${AUDIENCE}`,
    });
  });
  afterAll(async () => {
    await application.stop();
    await provider.stop();
  });

  it.each<[string, (draft: Draft) => unknown]>([
    ['as the provider issues it', () => undefined],
    ['for several audiences', ({ payload }) => (payload.aud = ['other', AUDIENCE])],
    ['for another audience that counts', ({ payload }) => (payload.aud = 'https://first.example')],
    ['with the full media type as its type', ({ header }) => (header.typ = 'application/AT+JWT')],
    ['with the type JWT', ({ header }) => (header.typ = 'JWT')],
    ['without a type', ({ header }) => (header.typ = undefined)],
    ['that expired within the clock tolerance', ({ payload }) => (payload.exp = now() - 9)],
    ['that begins within the clock tolerance', ({ payload }) => (payload.nbf = now() + 9)],
  ])('is valid %s', async (_how, redraft) => {
    expect(await statusOf(await provider.accessToken({ redraft }))).toBe(200);
  });

  it.each<[string, (draft: Draft) => unknown, ErrorBody]>([
    ['expired', ({ payload }) => (payload.exp = now() - 10), errorBodies.tokenExpired],
    ['without an expiry', ({ payload }) => delete payload.exp, wrongClaim('exp')],
    ['with an expiry in words', ({ payload }) => (payload.exp = 'never'), wrongClaim('exp')],
    ['before its time', ({ payload }) => (payload.nbf = now() + 11), wrongClaim('nbf')],
    ['for another audience', ({ payload }) => (payload.aud = 'other'), wrongClaim('aud')],
    ['for a longer audience', ({ payload }) => (payload.aud = `${AUDIENCE}x`), wrongClaim('aud')],
    ['of another issuer', ({ payload }) => (payload.iss = 'https://x'), wrongClaim('iss')],
    ['without an issuer', ({ payload }) => delete payload.iss, wrongClaim('iss')],
    ['bound to a key', ({ payload }) => (payload.cnf = { jkt: 'x' }), errorBodies.tokenBound],
    ['a logout token', ({ header }) => (header.typ = 'logout+jwt'), errorBodies.notAccessToken],
    [
      'an ID token of Keycloak',
      ({ header, payload }) => ([header.typ, payload.typ] = ['JWT', 'ID']),
      errorBodies.notAccessToken,
    ],
    [
      'an ID token of Amazon Cognito',
      ({ header, payload }) => ([header.typ, payload.token_use] = [undefined, 'id']),
      errorBodies.notAccessToken,
    ],
  ])('is invalid %s', async (_what, redraft, expected) => {
    await expectRefusal(await provider.accessToken({ redraft }), expected);
  });

  it('is invalid as an ID token, although it is for the same audience', async () => {
    await expectRefusal(await provider.idToken(), errorBodies.notAccessToken);
  });

  it.each([0, 1, 2])('is invalid with a bit changed in part %s', async (part) => {
    const parts = (await provider.accessToken()).split('.');
    const bytes = Buffer.from(parts[part] ?? '', 'base64url');
    bytes.writeUInt8(bytes.readUInt8(bytes.length >> 1) ^ 1, bytes.length >> 1);
    parts[part] = bytes.toString('base64url');

    await expectRefusal(parts.join('.'));
  });

  it.each(['none', 'NONE', ''])('is invalid with the algorithm %j', async (alg) => {
    const [, payload, signature] = (await provider.accessToken()).split('.');
    const header = encode({ alg, typ: 'at+jwt' });

    await expectRefusal(`${header}.${payload}.`);
    await expectRefusal(`${header}.${payload}.${signature}`);
  });

  const publicKey = createPublicKey({ key, format: 'jwk' });
  it.each<[string, object, SigningKey | Buffer]>([
    [
      'an HMAC by the key in PEM',
      HMAC,
      Buffer.from(publicKey.export({ format: 'pem', type: 'spki' })),
    ],
    ['an HMAC by the key in DER', HMAC, publicKey.export({ format: 'der', type: 'spki' })],
    ['an HMAC by the key as a JWK', HMAC, Buffer.from(JSON.stringify(publicPart(key)))],
    ["another issuer's signature", {}, makeKey('ES256')],
    ["another issuer's signature without a kid", { kid: undefined }, makeKey('ES256')],
    ['the critical extension exp', { crit: ['exp'], exp: 1 }, key],
    ['the critical extension b64', { crit: ['b64'], b64: true }, key],
    ['an unknown critical extension', { crit: ['urn:x'], 'urn:x': 1 }, key],
  ])('is invalid with %s', async (_what, header, signer) => {
    const claims = decodeJwt(await provider.accessToken());
    const token = await sign(claims, { ...HEADER, kid: key.kid, ...header }, signer);

    expect((await post(token)).json()).toMatchObject({ error: 40101 });
  });

  it('is invalid with a key in its own header, and the service fetches no key that it links to', async () => {
    const attackersKey = makeKey('ES256');
    const attackersPublic = publicPart(attackersKey);
    const fetched = jest.fn((_request: IncomingMessage, response: ServerResponse) =>
      response.end(JSON.stringify({ keys: [attackersPublic] })),
    );
    const url = await serveHttp(fetched);
    const claims = decodeJwt(await provider.accessToken());

    for (const header of [{ jwk: attackersPublic }, { jku: url }, { x5u: url }]) {
      for (const kid of [key.kid, attackersKey.kid, undefined]) {
        await expectRefusal(await sign(claims, { ...HEADER, kid, ...header }, attackersKey));
      }
    }

    expect(fetched).not.toHaveBeenCalled();
  });

  it.each([0, 1])('is invalid with a byte order mark before the JSON of part %s', async (part) => {
    const claims = decodeJwt(await provider.accessToken());
    const texts = [{ ...HEADER, kid: key.kid }, claims].map((each, index) =>
      Buffer.from(`${index === part ? '\ufeff' : ''}${JSON.stringify(each)}`).toString('base64url'),
    );
    const signature = createSign('sha256')
      .update(texts.join('.'))
      .sign({ key, format: 'jwk', dsaEncoding: 'ieee-p1363' }, 'base64url');

    await expectRefusal(`${texts.join('.')}.${signature}`);
  });

  it('is invalid encrypted', async () => {
    const token = await new CompactEncrypt(Buffer.from(await provider.accessToken()))
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
      .encrypt(new Uint8Array(32));

    await expectRefusal(token);
  });

  it('is invalid once it has expired, although it was accepted before', async () => {
    const redraft = ({ payload }: Draft): unknown => (payload.exp = now() + 60);
    const token = await provider.accessToken({ redraft });
    expect(await statusOf(token)).toBe(200);

    pass(60 * SECOND + 9 * SECOND);
    expect(await statusOf(token)).toBe(200);
    pass(SECOND);
    await expectRefusal(token, errorBodies.tokenExpired);
  });

  it.each(['a.b.c', '..', 'e30.e30.e30', 'eyJhbGciOiJFUzI1NiJ9..'])(
    'is invalid when it is %s',
    (token) => expectRefusal(token),
  );
});

describe('the keys of an issuer', () => {
  const key = makeKey('ES256');
  let provider: OpenIdProvider;
  beforeEach(async () => {
    provider = await OpenIdProvider.start(key);
  });
  afterEach(async () => {
    await application.stop();
    await provider.stop();
  });

  /** A token of the right issuer with an unknown `kid`. */
  const withUnknownKey = (kid: string) =>
    sign({ iss: provider.issuer, aud: AUDIENCE, exp: now() + 60 }, { ...HEADER, kid }, key);

  it('can be rotated without a restart: the new one is valid, the old one is not', async () => {
    application = await startFor(provider);
    const oldToken = await provider.accessToken();
    expect(await statusOf(oldToken)).toBe(200);

    await provider.stop();
    await provider.start(makeKey('RS256'));
    pass(COOLDOWN);

    expect(await statusOf(await provider.accessToken())).toBe(200);
    await expectRefusal(oldToken);
  });

  it('are fetched once for any number of unknown ones', async () => {
    application = await startFor(provider);
    expect(await statusOf(await provider.accessToken())).toBe(200);
    pass(COOLDOWN);
    const before = provider.fetches;

    const tokens = await Promise.all(
      Array.from({ length: 200 }, (_, at) => withUnknownKey(`unknown-${at}`)),
    );
    for (const token of tokens.slice(0, 10)) await expectRefusal(token);
    const answers = await Promise.all(tokens.map(statusOf));

    expect(new Set(answers)).toEqual(new Set([401]));
    expect(provider.fetches).toBe(before + 1);
  });

  it('are not fetched more often while the issuer does not respond', async () => {
    const asked = jest.fn((_request: IncomingMessage, response: ServerResponse) =>
      response.writeHead(500).end(),
    );
    const url = await serveHttp(asked);
    application = await startFor(provider, url);

    const statusWith = async (kid: string) => statusOf(await withUnknownKey(kid));
    const atOnce = Array.from({ length: 50 }, (_, at) => statusWith(`unknown-${at}`));
    const answers = await Promise.all(atOnce);
    pass(COOLDOWN - 1);
    answers.push(await statusWith('later'));

    expect(new Set(answers)).toEqual(new Set([503]));
    expect(asked).toHaveBeenCalledTimes(1);
  });

  it('are used for an hour while the issuer is down, and again when it is back', async () => {
    application = await startFor(provider);
    const [cached, fresh, late] = await Promise.all(
      Array.from({ length: 3 }, () => provider.accessToken()),
    );
    expect(await statusOf(cached ?? '')).toBe(200);

    await provider.stop();
    pass(60 * MINUTE - SECOND);
    for (const token of [cached, fresh]) expect(await statusOf(token ?? '')).toBe(200);

    pass(SECOND);
    for (const token of [cached, fresh, late]) {
      expect((await post(token ?? '')).json()).toEqual(errorBodies.unavailable);
    }
    expect(await statusOf(TOKEN)).toBe(200);

    await provider.start(key);
    pass(COOLDOWN);
    for (const token of [cached, fresh, late]) expect(await statusOf(token ?? '')).toBe(200);
  });

  it('are fetched after a start without the issuer, although the timer fires slightly early', async () => {
    const token = await provider.accessToken();
    await provider.stop();
    application = await startFor(provider);
    expect(await statusOf(token)).toBe(503);
    expect(await statusOf(TOKEN)).toBe(200);
    await provider.start(key);
    const now = performance.now.bind(performance);
    jest.spyOn(performance, 'now').mockImplementation(() => now() - 0.5);
    const fetched = once(provider.events, 'fetch');

    pass(COOLDOWN);
    await fetched;

    expect(await statusOf(token)).toBe(200);
  });

  it('are fetched every five minutes, so that a withdrawn one becomes invalid', async () => {
    application = await startFor(provider);
    const token = await provider.accessToken();
    expect(await statusOf(token)).toBe(200);

    await provider.stop();
    await provider.start(makeKey('ES256'));
    const fetched = once(provider.events, 'fetch');
    pass(5 * MINUTE);
    await fetched;

    // The keys take effect a moment after they were fetched.
    while ((await statusOf(token)) === 200);
    await expectRefusal(token);
  });

  it.each<[string, (response: ServerResponse, keys: string) => unknown]>([
    ['a response that never ends', (response) => response.write('{')],
    ['a response too large', (response, keys) => response.end(keys + ' '.repeat(512 * 1024))],
    ['a redirect', (response) => response.writeHead(302, { location: jwksOf(provider) }).end()],
    ['a response that is not JSON', (response) => response.end('<html>')],
    ['JSON that is not a key set', (response) => response.end('{"keys":7}')],
  ])('are not taken from %s', async (_what, answer) => {
    const within = AbortSignal.timeout.bind(AbortSignal);
    const timeout = jest.spyOn(AbortSignal, 'timeout').mockImplementation(() => within(100));
    const keys = JSON.stringify({ keys: await keysOf(provider) });
    const url = await serveHttp((_request, response) => answer(response, keys));
    application = await startFor(provider, url);

    expect(await statusOf(await provider.accessToken())).toBe(503);
    expect(timeout).toHaveBeenCalledWith(5 * SECOND);
  });

  it.each([
    ['an exponent of 1, with which anybody can sign', 2048, 'AQ'],
    ['an even exponent', 2048, 'AAQ'],
    ['a modulus under 2048 bits', 1024, 'AQAB'],
  ])('are ignored when RSA has %s, and the log says so', async (_what, modulusLength, e) => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue();
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength });
    const { n } = privateKey.export({ format: 'jwk' });
    const weak = { kty: 'RSA', n, e, kid: 'weak', alg: 'RS256', use: 'sig' };
    const keys = [weak, ...(await keysOf(provider))];
    application = await startFor(provider, await serveKeys(keys));

    const token = await provider.accessToken();
    expect(await statusOf(token)).toBe(200);
    const header = encode({ alg: 'RS256', typ: 'at+jwt', kid: 'weak' });
    const input = `${header}.${encode(decodeJwt(token))}`;
    const signature = createSign('sha256').update(input).sign(privateKey);
    await expectRefusal(`${input}.${signature.toString('base64url')}`);
    expect(warn.mock.calls.flat().join()).toMatch(/key "weak" .* is ignored/);
  });

  it('are ignored when they are of Ed448', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('ed448');
    const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'Ed448', alg: 'EdDSA' };
    application = await startFor(provider, await serveKeys([jwk]));
    const claims = decodeJwt(await provider.accessToken());
    const input = `${encode({ alg: 'EdDSA', typ: 'at+jwt', kid: 'Ed448' })}.${encode(claims)}`;
    const signature = signBytes(null, Buffer.from(input), privateKey).toString('base64url');

    await expectRefusal(`${input}.${signature}`);
  });

  it.each([
    ['names another issuer', { issuer: 'https://x.example' }],
    // This URL reaches the provider nevertheless.
    ['names an http: URL that is not loopback', { jwks_uri: 'http://0.0.0.0:PORT/jwks' }],
    ['names no URL', { jwks_uri: undefined }],
  ])('are not taken from a discovery document that %s', async (_what, wrong) => {
    const url = await serveHttp((_request, response) => {
      const right = { issuer: url, jwks_uri: `${provider.issuer}/jwks` };
      const { port } = new URL(provider.issuer);
      response.end(JSON.stringify({ ...right, ...wrong }).replace('PORT', port));
    });
    application = await TestApplication.start({ AUTH_ISSUER: url, AUTH_AUDIENCE: AUDIENCE });
    const token = await provider.accessToken({ redraft: ({ payload }) => (payload.iss = url) });

    expect(await statusOf(token)).toBe(503);
    expect(provider.fetches).toBe(0);
  });
});

const jwksOf = ({ issuer }: OpenIdProvider): string => `${issuer}/jwks`;

async function keysOf(provider: OpenIdProvider): Promise<object[]> {
  const { keys } = (await (await fetch(jwksOf(provider))).json()) as { keys: object[] };
  return keys;
}

/** Serves a key set until the end of the test. */
function serveKeys(keys: readonly object[]): Promise<string> {
  return serveHttp((_request, response) => response.end(JSON.stringify({ keys })));
}

function startFor({ issuer }: OpenIdProvider, jwksUrl?: string): Promise<TestApplication> {
  const environment = { AUTH_ISSUER: issuer, AUTH_AUDIENCE: AUDIENCE, AUTH_JWKS_URL: jwksUrl };
  return TestApplication.start(environment);
}

/** Starts a server that runs until the end of the test, and returns its URL. */
async function serveHttp(
  answer: (request: IncomingMessage, response: ServerResponse) => unknown,
): Promise<string> {
  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
