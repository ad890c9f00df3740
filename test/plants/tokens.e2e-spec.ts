import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { LightMyRequestResponse } from 'fastify';
import { BearerToken, hashToken } from '../../src/plants/auth/bearer-token';
import { TokenVerifier } from '../../src/plants/auth/token-verifier';
import { answerOf, TestApplication, TOKEN } from '../support/application';
import { releaseClock, stopClock } from '../support/clock';
import { expectAsDeclared } from '../support/contract';
import { errorBodies } from '../support/error-bodies';
import { makeFolder, removeFolder, useFolder } from '../support/folder';
import { useLog } from '../support/log';
import { AUDIENCE, type Draft, makeKey, OpenIdProvider } from '../support/openid-provider';
import { type ServiceProcess, useServiceHome } from '../support/service-process';

const trust = ({ issuer }: OpenIdProvider) => ({ AUTH_ISSUER: issuer, AUTH_AUDIENCE: AUDIENCE });

describe('the service with a token file or an issuer', () => {
  const home = useServiceHome();
  let service: ServiceProcess;
  let nextId = 1;

  function writeTokens(...lines: string[]): void {
    writeFileSync(join(home.folder, 'tokens.txt'), `${lines.join('\n')}\n`);
  }

  async function post(authorization: string, query = ''): Promise<number> {
    const body = `{"id":${nextId++},"name":"Fern"}`;
    const response = await service.post(body, { authorization }, query);
    await response.arrayBuffer();
    return response.status;
  }

  it('refuses a token soon after its removal, and serves the others without interruption', async () => {
    writeTokens('kept', 'removed');
    service = await home.start({ AUTH_TOKENS_FILE: 'tokens.txt' });
    expect(await post('Bearer removed')).toBe(200);

    writeTokens('kept', 'added');
    const kept: number[] = [];
    do {
      await setTimeout(20);
      kept.push(await post('Bearer kept'), await post(`Bearer ${TOKEN}`));
    } while ((await post('Bearer removed')) === 200);

    expect(await post('Bearer added')).toBe(200);
    expect(new Set(kept)).toEqual(new Set([200]));
  });

  it('starts while its issuer is down, logs that, and stops at once on SIGTERM', async () => {
    const provider = await OpenIdProvider.start(makeKey('ES256'));
    const jwt = await provider.accessToken();
    await provider.stop();
    service = await home.start({ ...trust(provider), LOG_LEVEL: 'trace' });

    expect(await post(`Bearer ${jwt}`)).toBe(503);

    expect(await service.end()).toEqual({ code: 0, signal: null });
    for (const fault of ['cannot be fetched', 'are not available']) {
      const line = `The keys of ${provider.issuer} ${fault}: connect ECONNREFUSED`;
      expect(service.stdout).toContain(line);
    }
    for (const part of jwt.split('.')) expect(service.stdout).not.toContain(part);
  });

  it('never logs a token, at any level', async () => {
    const provider = await OpenIdProvider.start(makeKey('ES256'));
    const [listed, inFile] = ['listed-in-the-environment', 'listed-in-the-file'];
    const [expired, unknown] = ['expired-in-the-file', 'unknown-to-everybody'];
    writeTokens(`${inFile} ci`, `${expired} old 2020-01-01T00:00:00Z`);
    service = await home.start({
      AUTH_TOKENS: listed,
      AUTH_TOKENS_FILE: 'tokens.txt',
      ...trust(provider),
      LOG_LEVEL: 'trace',
      ACCESS_LOG: 'true',
    });
    const jwt = await provider.accessToken();
    const redraft = ({ header, payload }: Draft): void => {
      Object.assign(header, { kid: 'unknown-kid' });
      Object.assign(payload, { aud: 'other' });
    };
    const badJwt = await provider.accessToken({ redraft });

    const answers = [];
    for (const token of [listed, inFile, expired, unknown, jwt, `${jwt}x`, badJwt]) {
      answers.push(await post(`Bearer ${token}`));
      await post(`Bearer ${token}`, `?access_token=${token}`);
      await post(`Bearer ${token}, Bearer ${token}`);
      await post(`Basic ${token}`);
    }
    writeTokens(`${inFile} 2027 broken`);
    await provider.stop();
    await service.end();

    expect(answers).toEqual([200, 200, 401, 401, 200, 401, 401]);
    const written = service.stdout + service.stderr;
    expect(written.match(/"path":"\/plants"/g)).toHaveLength(28);
    const parts = [jwt, badJwt].flatMap((token) => token.split('.'));
    for (const token of [listed, inFile, expired, unknown, ...parts]) {
      expect(written).not.toContain(token);
      expect(written).not.toContain(hashToken(token));
    }
  });
});

describe('the scopes of a token', () => {
  const folder = makeFolder();
  let provider: OpenIdProvider;
  let application: TestApplication;
  let nextId = 1;
  beforeAll(async () => {
    const file = join(folder, 'tokens.txt');
    writeFileSync(
      file,
      'file-creator ci scope=create\nfile-scraper 2100-01-01T00:00:00Z scope=metrics\n' +
        'file-both ci 2100-01-01T00:00:00Z scope=metrics scope=create\nfile-all\n',
    );
    provider = await OpenIdProvider.start(makeKey('ES256'));
    application = await TestApplication.start({
      AUTH_TOKENS:
        'creator scope=create, scraper,scope=metrics both scope=create scope=metrics all',
      AUTH_TOKENS_FILE: file,
      ...trust(provider),
      AUTH_SCOPE: 'plants:create plants:read',
      AUTH_SCOPE_METRICS: 'plants:read',
    });
  });
  afterAll(async () => {
    await application.stop();
    await provider.stop();
    removeFolder(folder);
  });

  /** @param create what a creation lacks, and `metrics` a reading of the metrics; undefined for nothing */
  async function expectScopes(token: string, create?: string, metrics?: string): Promise<void> {
    const authorization = `Bearer ${token}`;
    const answers = [
      await application.post(`{"id":${nextId++},"name":"Fern"}`, { authorization }),
      await application.app.inject({ url: '/metrics', headers: { authorization } }),
    ];
    for (const [at, missing] of [create, metrics].entries()) {
      const answer = answers[at];
      if (missing === undefined) expect(answer?.statusCode).toBe(200);
      else if (answer) expectForbidden(answer, missing);
    }
  }

  function expectForbidden(response: LightMyRequestResponse, scope: string): void {
    expectAsDeclared(answerOf(response));
    expect(response.statusCode).toBe(403);
    expect(response.json()).toEqual(errorBodies.forbidden);
    expect(response.headers['www-authenticate']).toBe(
      `Bearer realm="plants", error="insufficient_scope", scope="${scope}"`,
    );
  }

  it.each<[string[], string?, string?]>([
    [['creator', 'file-creator'], undefined, 'metrics'],
    [['scraper', 'file-scraper'], 'create', undefined],
    [['both', 'file-both', 'all', 'file-all'], undefined, undefined],
  ])('let the tokens %j do what they name', async (tokens, create, metrics) => {
    for (const token of tokens) await expectScopes(token, create, metrics);
  });

  it('are checked before the body', async () => {
    expectForbidden(await application.post('{', { authorization: 'Bearer scraper' }), 'create');
  });

  const all = 'plants:create plants:read';
  it.each<[string, string?, string?]>([
    ['plants:read plants:create', undefined, undefined],
    ['plants:create', all, 'plants:read'],
    ['plants:read', all, undefined],
    ['', all, 'plants:read'],
  ])('of an issuer decide: %s', async (scope, create, metrics) => {
    const token = await provider.accessToken({ scope });

    // The second time from the cache.
    for (let time = 0; time < 2; time++) await expectScopes(token, create, metrics);
  });

  it.each([
    { scope: undefined, scp: all.split(' ') },
    { scope: ['plants:create'], scp: 'plants:read x' },
  ])('of an issuer may be %j', async (claims) => {
    const redraft = ({ payload }: Draft): unknown => Object.assign(payload, claims);

    await expectScopes(await provider.accessToken({ redraft }));
  });

  it('of an issuer are those of AUTH_SCOPE for the metrics too, unless set', async () => {
    const environment = { ...trust(provider), AUTH_SCOPE: 'plants:create' };
    const other = await TestApplication.start(environment);
    const authorization = `Bearer ${await provider.accessToken({ scope: '' })}`;

    const response = await other.app.inject({ url: '/metrics', headers: { authorization } });

    expectForbidden(response, 'plants:create');
    await other.stop();
  });
});

describe('a TokenVerifier', () => {
  const file = join(useFolder(), 'tokens.txt');
  useLog();
  beforeEach(stopClock);
  afterEach(releaseClock);

  it('stops following file and issuer when it is closed', async () => {
    const provider = await OpenIdProvider.start(makeKey('ES256'));
    writeFileSync(file, '');
    const { issuer } = provider;
    const verifier = new TokenVerifier({ tokensFile: file, issuer, audience: AUDIENCE });
    await verifier.onModuleInit();
    await verifier.verify(new BearerToken(await provider.accessToken()));
    expect(jest.getTimerCount()).toBe(2);

    verifier.onApplicationShutdown();

    expect(jest.getTimerCount()).toBe(0);
    await provider.stop();
  });
});
