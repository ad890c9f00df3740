/**
 * Which JWTs are accepted, and when keys are fetched: by a real OpenID provider, and by servers that fail as a test
 * says.
 */
import crypto, { KeyObject } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import { Logger } from '@nestjs/common';
import { decodeJwt } from 'jose';
import type { ErrorBody } from '../../src/plants';
import { JwtVerifier } from '../../src/plants/auth/jwt.verifier';
import { scopeNames } from '../../src/plants/auth/scopes';
import { TokenVerifier } from '../../src/plants/auth/token-verifier';
import { AUTHORIZED, TestApplication, TOKEN } from '../support/application';
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

/** @param retryAfter in seconds */
async function expectUnavailable(token: string, retryAfter: number) {
  const response = await post(token);

  expect(response.json()).toEqual(errorBodies.unavailable);
  expect([response.statusCode, response.headers['retry-after']]).toEqual([503, String(retryAfter)]);
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

/** A public key that is too short to be secure. */
function smallKey(): object {
  const { publicKey } = crypto.generateKeyPairSync('rsa', { modulusLength: 1024 });
  return publicKey.export({ format: 'jwk' });
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

  /** Replaces the claims that only some issuers have, and the type by that of ID tokens. */
  const ofOtherIssuer =
    (claims: object) =>
    ({ header, payload }: TokenDraft) => {
      header.typ = 'JWT';
      for (const name of ['client_id', 'scope', 'jti', 'sub']) payload[name] = undefined;
      Object.assign(payload, { sub: 'subject' }, claims);
    };

  const withClaims =
    (claims: object) =>
    ({ payload }: TokenDraft) =>
      Object.assign(payload, claims);

  const withType =
    (typ: string) =>
    ({ header }: TokenDraft) =>
      Object.assign(header, { typ });

  it.each<[string, (draft: TokenDraft) => unknown]>([
    ['for several audiences', withClaims({ aud: ['other', AUDIENCE] })],
    ['for another audience that counts', withClaims({ aud: 'https://first.example' })],
    ['with the full media type as its type', withType('application/AT+JWT')],
    ['with the type JWT and a client_id', withType('JWT')],
    ['with a nonce, like those of Keycloak 24', ofOtherIssuer({ nonce: 'n', typ: 'Bearer' })],
    ['with a nonce and scopes, like those of authentik', ofOtherIssuer({ nonce: 'n', scope: '' })],
    ['with scp, like those of Okta', ofOtherIssuer({ scp: ['plants:create'] })],
    ['with azp and roles, like those of Entra ID', ofOtherIssuer({ azp: 'app', roles: ['x'] })],
    ['with appid and roles, like those of Entra ID', ofOtherIssuer({ appid: 'app', roles: ['x'] })],
    ['with azp and permissions, like those of Auth0', ofOtherIssuer({ azp: 'a', permissions: [] })],
    [
      'that begins within the clock tolerance',
      ({ payload }) => Object.assign(payload, { nbf: now() + 9 }),
    ],
  ])('is accepted %s', async (_how, redraft) => {
    expect(await statusOf(await provider.requestAccessToken(redraft))).toBe(200);
  });

  it.each<[string, (draft: TokenDraft) => unknown, ErrorBody]>([
    ['without an expiry', ({ payload }) => delete payload.exp, wrongClaim('exp')],
    ['with an expiry in words', withClaims({ exp: 'never' }), wrongClaim('exp')],
    [
      'before its time',
      ({ payload }) => Object.assign(payload, { nbf: now() + 11 }),
      wrongClaim('nbf'),
    ],
    ['for another audience', withClaims({ aud: 'other' }), wrongClaim('aud')],
    [
      'for a client of Amazon Cognito and another audience',
      untyped({ aud: 'other', client_id: AUDIENCE, token_use: 'access' }),
      wrongClaim('aud'),
    ],
    ['of another issuer', withClaims({ iss: 'https://x' }), wrongClaim('iss')],
    ['bound to a key', withClaims({ cnf: { jkt: 'x' } }), errorBodies.tokenBound],
    ['a logout token', withType('logout+jwt'), errorBodies.notAccessToken],
    ['an ID token', ofOtherIssuer({ auth_time: 1, acr: '0' }), errorBodies.notAccessToken],
    ['an ID token with a nonce', ofOtherIssuer({ nonce: 'n' }), errorBodies.notAccessToken],
    ['an ID token, hashed', untyped({ at_hash: 'x', typ: 'Bearer' }), errorBodies.notAccessToken],
    ['an ID token of Keycloak', untyped({ typ: 'ID' }), errorBodies.notAccessToken],
    ['an ID token of Amazon Cognito', untyped({ token_use: 'id' }), errorBodies.notAccessToken],
    [
      'an ID token of Entra ID with app roles',
      ofOtherIssuer({ oid: 'o', tid: 't', ver: '2.0', roles: ['plants:create'] }),
      errorBodies.notAccessToken,
    ],
    [
      'an ID token of a Google service account',
      ofOtherIssuer({ azp: 'a@b.iam.gserviceaccount.com', email_verified: true }),
      errorBodies.notAccessToken,
    ],
    [
      'an ID token with azp, roles and a nonce',
      ofOtherIssuer({ azp: AUDIENCE, roles: ['x'], nonce: 'n' }),
      errorBodies.notAccessToken,
    ],
  ])('is rejected %s', async (_what, redraft, expected) => {
    await expectRejection(await provider.requestAccessToken(redraft), expected);
  });

  it.each<[string, object, ErrorBody | undefined]>([
    ['accepted for a client that counts', { client_id: AUDIENCE, token_use: 'access' }, undefined],
    [
      'rejected for another client',
      { client_id: 'other', token_use: 'access' },
      wrongClaim('client_id'),
    ],
    ['rejected for no client', { token_use: 'access' }, wrongClaim('client_id')],
    ['rejected as an ID token', { client_id: AUDIENCE, token_use: 'id' }, wrongClaim('aud')],
    ['rejected with any other claims', { client_id: AUDIENCE }, wrongClaim('aud')],
  ])(
    'without an audience, like those of Amazon Cognito, is %s',
    async (_what, claims, expected) => {
      const { iss, exp, sub } = decodeJwt(await provider.requestAccessToken());
      const header = { alg: 'ES256', kid: key.kid };
      const response = await post(sign(header, { iss, exp, sub, version: 2, ...claims }, key));

      expect(response.json()).toEqual(expected ?? { name: 'Fern' });
    },
  );

  it.each([
    [' plants:create ', undefined],
    ['plants:create  plants:read', 'plants:create plants:read'],
    [undefined, undefined],
  ])('needs the scopes of %j, where spaces at the ends do not count', async (scope, missing) => {
    const options = { issuer: provider.issuer, audience: AUDIENCE };
    const verifier = new JwtVerifier(scope === undefined ? options : { ...options, scope });
    const token = await provider.requestAccessToken(({ payload }) =>
      Object.assign(payload, { scope: 'plants:create' }),
    );

    const { missingScopes } = await verifier.verify(token, 'digest');

    // No scope has an option of its own, so that of creating plants counts for all.
    for (const name of scopeNames) expect(missingScopes[name]).toBe(missing);
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
    const redraft = ({ payload }: TokenDraft): unknown =>
      Object.assign(payload, { exp: now() + 60 });
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
  const withUnknownKey = (kid: string, by = key) =>
    sign({ ...HEADER, kid }, { iss: provider.issuer, aud: AUDIENCE, exp: now() + 60 }, by);

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

  it('are replaced without a restart by a key with the same name', async () => {
    const oldToken = await startWithToken();

    await provider.stop();
    await provider.start({ ...makeKey(), kid: key.kid });
    advanceClock(FETCH_COOLDOWN_MS);

    expect(await statusOf(await provider.requestAccessToken())).toBe(200);
    advanceClock(MINUTE_MS);
    await expectRejection(oldToken);
  });

  it('are fetched once for any number of unknown key ids and invalid signatures', async () => {
    await startWithToken();
    const unknown = Array.from({ length: 20 }, (_, at) => withUnknownKey(`unknown-${at}`));
    const forged = unknown.map(() => withUnknownKey(key.kid, makeKey()));

    for (const fetches of [2, 3]) {
      advanceClock(FETCH_COOLDOWN_MS);
      await Promise.all([...unknown, ...forged].map((token) => expectRejection(token)));
      // These arrive a moment later. Only an unknown name tells of a new key.
      for (const token of unknown) await expectUnavailable(token, 10);
      for (const token of forged) await expectRejection(token);
      expect(provider.fetches).toBe(fetches);
    }
  });

  it('are awaited by a token with a new key, if they were fetched a moment ago', async () => {
    await startWithToken();
    advanceClock(FETCH_COOLDOWN_MS);
    await expectRejection(withUnknownKey('unknown'));
    await provider.stop();
    await provider.start();
    const token = await provider.requestAccessToken();

    advanceClock(SECOND_MS);
    await expectUnavailable(token, 9);
    const metrics = await application.app.inject({ url: '/metrics', headers: AUTHORIZED });
    expect(metrics.body).toContain('plant_store_creations_total{outcome="unavailable"} 0');

    advanceClock(9 * SECOND_MS);
    expect(await statusOf(token)).toBe(200);
  });

  describe('of a small issuer', () => {
    const good = makeKey('RS256');
    let requests = 0;

    const publish = (...keys: object[]): void => {
      respond = (response) => {
        requests++;
        const isDiscovery = response.req.url !== '/jwks';
        response.end(JSON.stringify(isDiscovery ? discovery() : { keys }));
      };
    };
    const discovery = () => ({ issuer: url, jwks_uri: `${url}/jwks` });
    const publicKey = ({ kty, n, e, kid }: SigningKey) => ({ kty, n, e, kid });
    const signed = (kid = good.kid, by = good) =>
      sign(
        { ...HEADER, alg: 'RS256', kid },
        { iss: url, aud: AUDIENCE, exp: now() + 60 * MINUTE_MS },
        by,
      );
    const areKeysValid = () => application.app.get(TokenVerifier).issuerKeys.get(url)?.isValid;

    it.each<[string, (response: ServerResponse) => unknown, number]>([
      ['fails', (response) => response.writeHead(500).end(), 10],
      ['asks for patience', (response) => response.writeHead(429, { 'Retry-After': 60 }).end(), 60],
      [
        'asks for an hour',
        (response) => response.writeHead(429, { 'Retry-After': 3600 }).end(),
        60,
      ],
      ['asks for a second', (response) => response.writeHead(503, { 'Retry-After': 1 }).end(), 10],
      [
        'names a time',
        (response) => {
          const time = new Date(Date.now() + 30 * SECOND_MS).toUTCString();
          response.writeHead(503, { 'Retry-After': time }).end();
        },
        30,
      ],
      ['says nothing', (response) => response.destroy(), 10],
    ])('are not requested for each token while it %s', async (_what, fail, seconds) => {
      // A whole second, because a time in a header has no milliseconds.
      jest.setSystemTime(Math.ceil(Date.now() / SECOND_MS) * SECOND_MS);
      publish(publicKey(good));
      application = await startFor({ issuer: url });
      expect(await statusOf(signed())).toBe(200);
      const tokens = [signed('unknown'), signed(good.kid, makeKey('RS256'))];
      respond = (response) => {
        requests++;
        fail(response);
      };

      for (let attempt = 1; attempt <= 2; attempt++) {
        advanceClock(attempt === 1 ? FETCH_COOLDOWN_MS : SECOND_MS);
        requests = 0;
        await Promise.all([...tokens, ...tokens].map((token) => expectUnavailable(token, seconds)));
        advanceClock((seconds - 1) * SECOND_MS);
        for (const token of tokens) await expectUnavailable(token, 1);
        expect(requests).toBe(1);
        expect(areKeysValid()).toBe(false);
      }

      publish(publicKey(good));
      advanceClock(SECOND_MS);
      for (const token of tokens) await expectRejection(token);
      expect(areKeysValid()).toBe(true);
    });

    const pem = 'MIIB';
    it.each<[string, object]>([
      ['has only a certificate', { kty: 'RSA', x5c: [pem] }],
      ['is too small', smallKey()],
      ['is malformed', { kty: 'RSA', n: 7, e: null }],
    ])('make only the tokens of a key invalid that %s', async (_what, bad) => {
      const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue();
      const error = jest.spyOn(Logger.prototype, 'error').mockReturnValue();
      publish(publicKey(good), { ...bad, kid: 'bad' });
      application = await startFor({ issuer: url });
      expect(await statusOf(signed())).toBe(200);

      for (const wait of [0, FETCH_COOLDOWN_MS]) {
        advanceClock(wait);
        await expectRejection(signed('bad'));
      }

      expect(areKeysValid()).toBe(true);
      expect([...warn.mock.calls, ...error.mock.calls]).toEqual([]);
      // The issuer mends the key, and keeps its name.
      const mended = makeKey('RS256');
      publish(publicKey(good), { ...publicKey(mended), kid: 'bad' });
      advanceClock(FETCH_COOLDOWN_MS);
      expect(await statusOf(signed('bad', mended))).toBe(200);
    });

    const DISCOVERY = '/.well-known/openid-configuration';
    it.each<[string, string, string, string]>([
      ['discovery that is missing', DISCOVERY, '404', 'responds with the status 404'],
      ['discovery in HTML', DISCOVERY, '<html>', 'does not respond with JSON'],
      ['discovery that is null', DISCOVERY, 'null', 'names undefined as its issuer'],
      ['discovery that is a number', DISCOVERY, '7', 'names undefined as its issuer'],
      [
        'keys at a port that fetch blocks',
        DISCOVERY,
        '{"issuer":"URL","jwks_uri":"http://127.0.0.1:10080/jwks"}',
        'has a jwks_uri with the port 10080, which Node.js does not allow',
      ],
      ['keys that are missing', '/jwks', '404', 'responds with the status 404'],
      ['keys in HTML', '/jwks', '<html>', 'does not respond with JSON'],
      ['keys that are null', '/jwks', 'null', 'is not a JSON Web Key Set'],
      ['keys without a list', '/jwks', '{}', 'is not a JSON Web Key Set'],
    ])(
      'are not fetched from an issuer with %s, and the log says why',
      async (_what, path, body, reason) => {
        const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue();
        respond = (response) => {
          const isWrong = response.req.url === path;
          if (isWrong && body === '404') response.writeHead(404).end();
          else response.end(isWrong ? body.replace('URL', url) : JSON.stringify(discovery()));
        };
        application = await startFor({ issuer: url });

        await expectUnavailable(signed(), 10);

        const effect = 'Requests whose JWT was signed with an unknown key get 503.';
        const line = `The keys of ${url} cannot be fetched: ${url}${path} ${reason}. ${effect}`;
        expect(warn.mock.calls).toEqual([[line]]);
      },
    );
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
    advanceClock(FETCH_COOLDOWN_MS);
    await expectRejection(token);
  });

  it.each([
    ['names another issuer', { issuer: 'https://x.example' }, 'names "https://x.example" as its'],
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
    const token = await provider.requestAccessToken(({ payload }) =>
      Object.assign(payload, { iss: url }),
    );

    expect(await statusOf(token)).toBe(503);
    expect(provider.fetches).toBe(0);
    expect(warn).toHaveBeenCalledWith(expect.stringContaining(reason));
  });
});

function startFor({ issuer }: { issuer: string }, jwksUrl?: string): Promise<TestApplication> {
  const environment = { AUTH_ISSUER: issuer, AUTH_AUDIENCE: AUDIENCE, AUTH_JWKS_URL: jwksUrl };
  return TestApplication.start(environment);
}
