import crypto, { KeyObject } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import { Logger } from '@nestjs/common';
import { decodeJwt } from 'jose';
import type { ErrorBody } from '../../src/plants';
import { TestApplication, TOKEN } from '../support/application';
import { advanceClock, restoreClock, stopClock } from '../support/clock';
import { errorBodies, errorNumbers } from '../support/error-bodies';
import { listen } from '../support/listen';
import { until } from '../support/until';
import {
  AUDIENCE,
  type TokenDraft,
  makeKey,
  OpenIdProvider,
  type SigningKey,
} from '../support/openid-provider';

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
/** The minimum time between two fetches of keys. */
const FETCH_COOLDOWN_MS = 10 * SECOND_MS;
const HEADER = { alg: 'ES256', typ: 'at+jwt' };

let application: TestApplication;
let nextId = 1;

const post = (token: string) =>
  application.post(`{"id":${nextId++},"name":"Fern"}`, { authorization: `Bearer ${token}` });
const statusOf = async (token: string) => (await post(token)).statusCode;

async function expectRejection(token: string, expected: ErrorBody = errorBodies.invalidToken) {
  const response = await post(token);

  expect(response.json()).toEqual(expected);
  expect(response.statusCode).toBe(401);
  expect(response.headers['www-authenticate']).toBe('Bearer realm="plants", error="invalid_token"');
}

const wrongClaim = (claim: string): ErrorBody => ({
  error: errorNumbers.invalidToken,
  message: `The token's claim ${claim} is missing or invalid.`,
});

const now = (): number => Math.floor(Date.now() / SECOND_MS);

/** Signs any header and claims, as an attacker or an unusual issuer would. */
function sign(header: object, claims: object, key: KeyObject | SigningKey) {
  const parts = [header, claims].map((part) =>
    Buffer.from(JSON.stringify(part)).toString('base64url'),
  );
  const input = Buffer.from(parts.join('.'));
  const signer = key instanceof KeyObject ? key : crypto.createPrivateKey({ key, format: 'jwk' });
  const signature =
    signer.type === 'secret'
      ? crypto.createHmac('sha256', signer).update(input).digest()
      : crypto.sign(undefined, input, { key: signer, dsaEncoding: 'ieee-p1363' });
  return [...parts, signature.toString('base64url')].join('.');
}

beforeEach(stopClock);
afterEach(() => {
  restoreClock();
  jest.restoreAllMocks();
});

describe('a JWT', () => {
  const key = makeKey();
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

  const untyped = (claims: object) => (draft: TokenDraft) => {
    draft.header.typ = undefined;
    Object.assign(draft.payload, claims);
  };

  it.each<[string, (draft: TokenDraft) => unknown]>([
    ['for several audiences', ({ payload }) => (payload.aud = ['other', AUDIENCE])],
    ['for another audience that counts', ({ payload }) => (payload.aud = 'https://first.example')],
    ['with the full media type as its type', ({ header }) => (header.typ = 'application/AT+JWT')],
    ['with the type JWT', ({ header }) => (header.typ = 'JWT')],
    ['with a nonce, like those of Keycloak 24', untyped({ nonce: 'n', typ: 'Bearer' })],
    ['with a nonce and scopes, like those of authentik', untyped({ nonce: 'n', scope: 'openid' })],
    ['that begins within the clock tolerance', ({ payload }) => (payload.nbf = now() + 9)],
  ])('is accepted %s', async (_how, redraft) => {
    expect(await statusOf(await provider.requestAccessToken(redraft))).toBe(200);
  });

  it.each<[string, (draft: TokenDraft) => unknown, ErrorBody]>([
    ['without an expiry', ({ payload }) => delete payload.exp, wrongClaim('exp')],
    ['with an expiry in words', ({ payload }) => (payload.exp = 'never'), wrongClaim('exp')],
    ['before its time', ({ payload }) => (payload.nbf = now() + 11), wrongClaim('nbf')],
    ['for another audience', ({ payload }) => (payload.aud = 'other'), wrongClaim('aud')],
    ['of another issuer', ({ payload }) => (payload.iss = 'https://x'), wrongClaim('iss')],
    ['bound to a key', ({ payload }) => (payload.cnf = { jkt: 'x' }), errorBodies.tokenBound],
    ['a logout token', ({ header }) => (header.typ = 'logout+jwt'), errorBodies.notAccessToken],
    ['an ID token', untyped({ nonce: 'n', scope: undefined }), errorBodies.notAccessToken],
    ['an ID token, hashed', untyped({ at_hash: 'x', typ: 'Bearer' }), errorBodies.notAccessToken],
    ['an ID token of Keycloak', untyped({ typ: 'ID' }), errorBodies.notAccessToken],
    ['an ID token of Amazon Cognito', untyped({ token_use: 'id' }), errorBodies.notAccessToken],
  ])('is rejected %s', async (_what, redraft, expected) => {
    await expectRejection(await provider.requestAccessToken(redraft), expected);
  });

  const attackersKey = makeKey();
  const publicKey = crypto.createPublicKey({ key, format: 'jwk' });
  const pem = publicKey.export({ format: 'pem', type: 'spki' });
  it.each<[string, object, SigningKey | KeyObject]>([
    ['the algorithm none', { alg: 'none' }, key],
    ['an HMAC by the public key', { alg: 'HS256' }, crypto.createSecretKey(pem, 'utf8')],
    ["another issuer's signature", {}, attackersKey],
    ["another issuer's signature without a kid", { kid: undefined }, attackersKey],
    [
      'a key in its own header',
      {
        jwk: crypto.createPublicKey({ key: attackersKey, format: 'jwk' }).export({ format: 'jwk' }),
      },
      attackersKey,
    ],
    ['an unknown critical extension', { crit: ['urn:x'], 'urn:x': 1 }, key],
  ])('is rejected with %s, and without a signature', async (_what, header, signer) => {
    const claims = decodeJwt(await provider.requestAccessToken());
    const token = sign({ ...HEADER, kid: key.kid, ...header }, claims, signer);

    for (const each of [token, token.slice(0, token.lastIndexOf('.') + 1)]) {
      expect((await post(each)).json()).toMatchObject({ error: errorNumbers.invalidToken });
    }
  });

  it('is rejected after its expiry, even if it was accepted before', async () => {
    const redraft = ({ payload }: TokenDraft): unknown => (payload.exp = now() + 60);
    const token = await provider.requestAccessToken(redraft);
    expect(await statusOf(token)).toBe(200);

    advanceClock(60 * SECOND_MS + 9 * SECOND_MS);
    expect(await statusOf(token)).toBe(200);
    advanceClock(SECOND_MS);
    await expectRejection(token, errorBodies.tokenExpired);
  });

  it('is rejected when it is malformed', async () => {
    for (const token of ['a.b.c', '..', 'e30.W10.e30']) await expectRejection(token);
    await expectRejection('e30.e30.e30', wrongClaim('iss'));
  });
});

describe('the keys of an issuer', () => {
  const key = makeKey();
  let provider: OpenIdProvider;
  let respond: (response: ServerResponse) => unknown;
  const server = createServer((_request, response) => void respond(response));
  let url: string;
  beforeAll(async () => {
    url = (await listen(server)).origin;
  });
  afterAll(() => server.close());
  beforeEach(async () => {
    provider = await OpenIdProvider.start(key);
  });
  afterEach(async () => {
    await application.stop();
    await provider.stop();
  });

  /** Signs a token that names the issuer and an unknown `kid`. */
  const withUnknownKey = (kid: string) =>
    sign({ ...HEADER, kid }, { iss: provider.issuer, aud: AUDIENCE, exp: now() + 60 }, key);

  /** Starts the service, waits until it has the keys, and returns a valid token. */
  async function startWithToken(): Promise<string> {
    application = await startFor(provider);
    const token = await provider.requestAccessToken();
    expect(await statusOf(token)).toBe(200);
    return token;
  }

  it('are rotated without a restart: a new key is accepted, the old one rejected', async () => {
    const oldToken = await startWithToken();

    await provider.stop();
    await provider.start(makeKey('RS256'));
    advanceClock(FETCH_COOLDOWN_MS);

    expect(await statusOf(await provider.requestAccessToken())).toBe(200);
    advanceClock(MINUTE_MS);
    await expectRejection(oldToken);
  });

  it('are fetched once for any number of unknown key ids', async () => {
    application = await startFor(provider);
    const tokens = Array.from({ length: 20 }, (_, at) => withUnknownKey(`unknown-${at}`));

    for (const fetches of [1, 2]) {
      await Promise.all(tokens.map((token) => expectRejection(token)));
      expect(provider.fetches).toBe(fetches);
      advanceClock(FETCH_COOLDOWN_MS);
    }
  });

  it('are cached for an hour while the issuer is down, and fetched again when it is back', async () => {
    const cached = await startWithToken();
    const fresh = await provider.requestAccessToken();

    await provider.stop();
    advanceClock(60 * MINUTE_MS - SECOND_MS);
    for (const token of [cached, fresh]) expect(await statusOf(token)).toBe(200);

    advanceClock(MINUTE_MS);
    for (const token of [cached, fresh]) {
      expect((await post(token)).json()).toEqual(errorBodies.unavailable);
    }
    expect(await statusOf(TOKEN)).toBe(200);

    await provider.start(key);
    advanceClock(FETCH_COOLDOWN_MS);
    for (const token of [cached, fresh]) expect(await statusOf(token)).toBe(200);
  });

  it('are fetched regularly, and withdrawn keys are rejected after five minutes', async () => {
    const token = await startWithToken();

    await provider.stop();
    await provider.start();
    const before = provider.fetches;
    advanceClock(4 * MINUTE_MS);
    await until(() => provider.fetches > before);

    // The keys take effect shortly after they were fetched, and then accepted tokens are verified once a minute.
    while ((await statusOf(token)) === 200) advanceClock(MINUTE_MS);
    await expectRejection(token);
  });

  it.each([
    ['names another issuer', { issuer: 'https://x.example' }, 'names "https://x.example"'],
    // The provider is reachable at this URL.
    ['names an http: URL that is not loopback', { jwks_uri: 'http://0.0.0.0:PORT/jwks' }, 'has no'],
    ['names no URL', { jwks_uri: undefined }, 'has no jwks_uri'],
    ['is behind a redirect', {}, 'the status 302'],
  ])('are not fetched with a discovery document that %s', async (_what, wrong, reason) => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue();
    const right = { issuer: url, jwks_uri: `${provider.issuer}/jwks` };
    const document = JSON.stringify({ ...right, ...wrong });
    const isMoved = reason === 'the status 302';
    respond = (response) =>
      isMoved && response.req.url !== '/moved'
        ? response.writeHead(302, { location: '/moved' }).end()
        : response.end(document.replace('PORT', new URL(provider.issuer).port));
    application = await startFor({ issuer: url });
    const token = await provider.requestAccessToken(({ payload }) => (payload.iss = url));

    expect(await statusOf(token)).toBe(503);
    expect(provider.fetches).toBe(0);
    expect(warn).toHaveBeenCalledWith(expect.stringContaining(reason));
  });
});

function startFor({ issuer }: { issuer: string }, jwksUrl?: string): Promise<TestApplication> {
  const environment = { AUTH_ISSUER: issuer, AUTH_AUDIENCE: AUDIENCE, AUTH_JWKS_URL: jwksUrl };
  return TestApplication.start(environment);
}
