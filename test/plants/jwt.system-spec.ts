import crypto, { KeyObject } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { Logger } from '@nestjs/common';
import { decodeJwt } from 'jose';
import type { ErrorBody } from '../../src/plants';
import { TestApplication, TOKEN } from '../support/application';
import { advanceClock, restoreClock, stopClock } from '../support/clock';
import { errorBodies, errorNumbers } from '../support/error-bodies';
import { listen } from '../support/listen';
import {
  AUDIENCE,
  type TokenDraft,
  makeKey,
  OpenIdProvider,
  toPublicKey,
  type SigningKey,
} from '../support/openid-provider';

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
/** The minimum time between two fetches of keys. */
const FETCH_COOLDOWN_MS = 10 * SECOND_MS;
const HEADER = { alg: 'ES256', typ: 'at+jwt' };

let application: TestApplication;
let nextId = 1;
/** Servers that run until the end of the test. */
const servers: Server[] = [];

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
afterEach(async () => {
  restoreClock();
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

  const untyped = (claims: object) => (draft: TokenDraft) => {
    draft.header.typ = undefined;
    Object.assign(draft.payload, claims);
  };

  it.each<[string, (draft: TokenDraft) => unknown]>([
    ['for several audiences', ({ payload }) => (payload.aud = ['other', AUDIENCE])],
    ['for another audience that counts', ({ payload }) => (payload.aud = 'https://first.example')],
    ['with the full media type as its type', ({ header }) => (header.typ = 'application/AT+JWT')],
    ['with the type JWT', ({ header }) => (header.typ = 'JWT')],
    ['without a type', ({ header }) => (header.typ = undefined)],
    ['with a nonce, like those of Keycloak 24', untyped({ nonce: 'n', typ: 'Bearer' })],
    ['with a nonce and scopes, like those of authentik', untyped({ nonce: 'n', scope: 'openid' })],
    ['with a nonce, and stating its use', untyped({ nonce: 'n', token_use: 'access' })],
    ['that begins within the clock tolerance', ({ payload }) => (payload.nbf = now() + 9)],
  ])('is accepted %s', async (_how, redraft) => {
    expect(await statusOf(await provider.requestAccessToken({ redraft }))).toBe(200);
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
    await expectRejection(await provider.requestAccessToken({ redraft }), expected);
  });

  const attackersKey = makeKey('ES256');
  const publicKey = crypto.createPublicKey({ key, format: 'jwk' });
  const pem = publicKey.export({ format: 'pem', type: 'spki' });
  it.each<[string, object, SigningKey | KeyObject]>([
    ['the algorithm none', { alg: 'none' }, key],
    ['an HMAC by the public key', { alg: 'HS256' }, crypto.createSecretKey(pem, 'utf8')],
    ["another issuer's signature", {}, attackersKey],
    ["another issuer's signature without a kid", { kid: undefined }, attackersKey],
    ['a key in its own header', { jwk: toPublicKey(attackersKey) }, attackersKey],
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
    const token = await provider.requestAccessToken({ redraft });
    expect(await statusOf(token)).toBe(200);

    advanceClock(60 * SECOND_MS + 9 * SECOND_MS);
    expect(await statusOf(token)).toBe(200);
    advanceClock(SECOND_MS);
    await expectRejection(token, errorBodies.tokenExpired);
  });

  it('is rejected without claims', () => expectRejection('e30.e30.e30', wrongClaim('iss')));

  it.each(['a.b.c', 'a.b.c.d.e', '..', 'e30.W10.e30', 'eyJhbGciOiJFUzI1NiJ9..'])(
    'is rejected: %s',
    (token) => expectRejection(token),
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

  /** Starts the service with an issuer that publishes these keys. */
  async function startWithKeys(keys: unknown[]): Promise<void> {
    const url = await serveHttp((response) => response.end(JSON.stringify({ keys })));
    application = await startFor(provider, url);
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
    await startWithToken();
    advanceClock(FETCH_COOLDOWN_MS);
    const before = provider.fetches;

    const tokens = Array.from({ length: 200 }, (_, at) => withUnknownKey(`unknown-${at}`));
    for (const token of tokens.slice(0, 10)) await expectRejection(token);
    const statuses = await Promise.all(tokens.map(statusOf));

    expect(new Set(statuses)).toEqual(new Set([401]));
    expect(provider.fetches).toBe(before + 1);
  });

  it('are cached for an hour while the issuer is down, and fetched again when it is back', async () => {
    const cached = await startWithToken();
    const [fresh, late] = [
      await provider.requestAccessToken(),
      await provider.requestAccessToken(),
    ];

    await provider.stop();
    advanceClock(60 * MINUTE_MS - SECOND_MS);
    for (const token of [cached, fresh]) expect(await statusOf(token)).toBe(200);

    advanceClock(MINUTE_MS);
    for (const token of [cached, fresh, late]) {
      expect((await post(token)).json()).toEqual(errorBodies.unavailable);
    }
    expect(await statusOf(TOKEN)).toBe(200);

    await provider.start(key);
    advanceClock(FETCH_COOLDOWN_MS);
    for (const token of [cached, fresh, late]) expect(await statusOf(token)).toBe(200);
  });

  it('are fetched regularly, and withdrawn keys are rejected after five minutes', async () => {
    const token = await startWithToken();

    await provider.stop();
    await provider.start(makeKey('ES256'));
    const fetched = once(provider.events, 'fetch');
    advanceClock(4 * MINUTE_MS);
    await fetched;

    // The keys take effect shortly after they were fetched, and then accepted tokens are verified once a minute.
    while ((await statusOf(token)) === 200) advanceClock(MINUTE_MS);
    await expectRejection(token);
  });

  it.each<[string, (response: ServerResponse) => unknown]>([
    ['a response that never ends', (response) => response.write('{')],
    [
      'a redirect',
      (response) => response.writeHead(302, { location: `${provider.issuer}/jwks` }).end(),
    ],
    ['a response that is not JSON', (response) => response.end('<html>')],
    ['JSON that is not a key set', (response) => response.end('{"keys":7}')],
  ])('are not accepted from %s', async (_what, respond) => {
    application = await startFor(provider, await serveHttp(respond));

    expect(await statusOf(await provider.requestAccessToken())).toBe(503);
  });

  it('are ignored when they are of RSA with a modulus under 2048 bits', async () => {
    const { privateKey, publicKey } = crypto.generateKeyPairSync('rsa', { modulusLength: 1024 });
    const header = { ...HEADER, alg: 'RS256', kid: 'weak' };
    await startWithKeys([{ ...publicKey.export({ format: 'jwk' }), ...header }, toPublicKey(key)]);

    const token = await provider.requestAccessToken();
    expect(await statusOf(token)).toBe(200);
    await expectRejection(sign(header, decodeJwt(token), privateKey));
  });

  const other = { ...toPublicKey(makeKey('ES256')), kid: key.kid };
  const right = toPublicKey(key);
  const withoutKid = { ...right, kid: undefined };

  it.each<[string, unknown[], string | undefined]>([
    ['the same key twice', [right, right], key.kid],
    ['another key with the same kid', [other, right], key.kid],
    ['a malformed key with the same kid', [{ ...right, x: 'x' }, right], key.kid],
    ['several keys without a kid', [{ ...other, kid: undefined }, withoutKid], undefined],
  ])('accept a JWT although the set has %s', async (_what, keys, kid) => {
    await startWithKeys(keys);
    const claims = decodeJwt(await provider.requestAccessToken());
    const header = { ...HEADER, kid };

    expect(await statusOf(sign(header, claims, key))).toBe(200);
    await expectRejection(sign(header, claims, makeKey('ES256')));
    const expired = sign(header, { ...claims, exp: now() - 60 }, key);
    await expectRejection(expired, errorBodies.tokenExpired);
  });

  it.each([
    ['names another issuer', { issuer: 'https://x.example' }, 'issuer "https://x.example", not'],
    // The provider is reachable at this URL.
    ['names an http: URL that is not loopback', { jwks_uri: 'http://0.0.0.0:PORT/jwks' }, 'has no'],
    ['names no URL', { jwks_uri: undefined }, 'has no jwks_uri'],
  ])('are not fetched with a discovery document that %s', async (_what, wrong, reason) => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue();
    const url = await serveHttp((response) => {
      const right = { issuer: url, jwks_uri: `${provider.issuer}/jwks` };
      const { port } = new URL(provider.issuer);
      response.end(JSON.stringify({ ...right, ...wrong }).replace('PORT', port));
    });
    application = await startFor({ issuer: url });
    const token = await provider.requestAccessToken({
      redraft: ({ payload }) => (payload.iss = url),
    });

    expect(await statusOf(token)).toBe(503);
    expect(provider.fetches).toBe(0);
    expect(warn).toHaveBeenCalledWith(expect.stringContaining(reason));
  });
});

function startFor({ issuer }: { issuer: string }, jwksUrl?: string): Promise<TestApplication> {
  const environment = { AUTH_ISSUER: issuer, AUTH_AUDIENCE: AUDIENCE, AUTH_JWKS_URL: jwksUrl };
  return TestApplication.start(environment);
}

/** Starts a server that runs until the end of the test, and returns its URL. */
async function serveHttp(respond: (response: ServerResponse) => unknown): Promise<string> {
  const server = createServer((_request, response) => void respond(response));
  servers.push(server);
  return (await listen(server)).origin;
}
