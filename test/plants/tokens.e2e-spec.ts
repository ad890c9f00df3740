import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { Controller, Get, Logger, Module, Req } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import type { LightMyRequestResponse } from 'fastify';
import type { AuthOptions } from '../../src/plants/auth/auth.options';
import { BearerGuard } from '../../src/plants/auth/bearer.guard';
import type { Caller } from '../../src/plants/auth/caller';
import { TokenVerifier } from '../../src/plants/auth/token-verifier';
import { hashToken } from '../../src/plants/auth/bearer-token';
import { answerOf, TestApplication, TOKEN } from '../support/application';
import { releaseClock, stopClock } from '../support/clock';
import { expectAsDeclared } from '../support/contract';
import { errorBodies } from '../support/error-bodies';
import { makeFolder, removeFolder, useFolder } from '../support/folder';
import { AUDIENCE, type Draft, makeKey, OpenIdProvider } from '../support/openid-provider';
import { ServiceProcess } from '../support/service-process';

describe('the service with a token file or an issuer', () => {
  let service: ServiceProcess;
  let nextId = 1;
  afterEach(async () => {
    service.kill('SIGKILL');
    await service.ended;
  });
  const folder = useFolder();
  const file = join(folder, 'tokens.txt');

  async function post(authorization: string, query = ''): Promise<number> {
    const body = `{"id":${nextId++},"name":"Fern"}`;
    const response = await service.post(body, { authorization }, query);
    await response.arrayBuffer();
    return response.status;
  }

  it('refuses a token soon after its removal, and serves the others without interruption', async () => {
    writeFileSync(file, 'kept\nremoved\n');
    service = await ServiceProcess.start(folder, { AUTH_TOKENS_FILE: 'tokens.txt' });
    expect(await post('Bearer removed')).toBe(200);

    writeFileSync(file, 'kept\nadded\n');
    const kept: number[] = [];
    do {
      await setTimeout(20);
      kept.push(await post('Bearer kept'), await post(`Bearer ${TOKEN}`));
    } while ((await post('Bearer removed')) === 200);

    expect(await post('Bearer added')).toBe(200);
    expect(new Set(kept)).toEqual(new Set([200]));
  });

  it('ends with one sentence when the file is invalid', async () => {
    writeFileSync(file, 'a\nb c d\n');
    service = new ServiceProcess(folder, { AUTH_TOKENS_FILE: file });

    expect(await service.ended).toEqual({ code: 1, signal: null });
    expect(service.stderr).toMatch(
      /^The token file \S+ cannot be used: line 2 has an invalid field: .* \(AUTH_TOKENS_FILE\)\.\n$/,
    );
  });

  it('starts while its issuer is down, logs that, and stops at once on SIGTERM', async () => {
    const provider = await OpenIdProvider.start(makeKey('ES256'));
    const { issuer } = provider;
    const jwt = await provider.accessToken();
    await provider.stop();
    service = await ServiceProcess.start(folder, {
      AUTH_ISSUER: issuer,
      AUTH_AUDIENCE: AUDIENCE,
      LOG_LEVEL: 'trace',
    });

    expect(await post(`Bearer ${jwt}`)).toBe(503);
    service.kill('SIGTERM');

    expect(await service.ended).toEqual({ code: 0, signal: null });
    for (const fault of ['cannot be fetched', 'are not available']) {
      expect(service.stdout).toContain(`The keys of ${issuer} ${fault}: connect ECONNREFUSED`);
    }
    for (const part of jwt.split('.')) expect(service.stdout).not.toContain(part);
  });

  it('never logs a token, at any level', async () => {
    const provider = await OpenIdProvider.start(makeKey('ES256'));
    const [listed, inFile] = ['listed-in-the-environment', 'listed-in-the-file'];
    const [expired, unknown] = ['expired-in-the-file', 'unknown-to-everybody'];
    writeFileSync(file, `${inFile} ci\n${expired} old 2020-01-01T00:00:00Z\n`);
    service = await ServiceProcess.start(folder, {
      AUTH_TOKENS: listed,
      AUTH_TOKENS_FILE: file,
      AUTH_ISSUER: provider.issuer,
      AUTH_AUDIENCE: AUDIENCE,
      LOG_LEVEL: 'trace',
      ACCESS_LOG: 'true',
    });
    const jwt = await provider.accessToken();
    const badJwt = await provider.accessToken({
      redraft: ({ header, payload }) => {
        payload.aud = 'other';
        header.kid = 'unknown-kid';
      },
    });

    const answers = [];
    for (const token of [listed, inFile, expired, unknown, jwt, `${jwt}x`, badJwt]) {
      answers.push(await post(`Bearer ${token}`));
      await post(`Bearer ${token}`, `?access_token=${token}`);
      await post(`Bearer ${token}, Bearer ${token}`);
      await post(`Basic ${token}`);
    }
    writeFileSync(file, `${inFile} 2027 broken\n`);
    await provider.stop();
    service.kill('SIGTERM');
    await service.ended;

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
  let folder: string;
  let provider: OpenIdProvider;
  let application: TestApplication;
  let nextId = 1;
  beforeAll(async () => {
    folder = makeFolder();
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
      AUTH_ISSUER: provider.issuer,
      AUTH_AUDIENCE: AUDIENCE,
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

  /** The scope that each of both operations misses; undefined where it is allowed. */
  it.each<[string, string?, string?]>([
    ['creator', undefined, 'metrics'],
    ['file-creator', undefined, 'metrics'],
    ['scraper', 'create', undefined],
    ['file-scraper', 'create', undefined],
    ['both', undefined, undefined],
    ['file-both', undefined, undefined],
    ['all', undefined, undefined],
    ['file-all', undefined, undefined],
  ])('let the token %s do what they name', async (token, create, metrics) => {
    await expectScopes(token, create, metrics);
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

  it.each<[string, object]>([
    ['an array called scp', { scope: undefined, scp: all.split(' ') }],
    [
      'a string called scp and an array called scope',
      { scope: ['plants:create'], scp: 'plants:read x' },
    ],
  ])('of an issuer may be %s', async (_how, claims) => {
    const redraft = ({ payload }: Draft): unknown => Object.assign(payload, claims);

    await expectScopes(await provider.accessToken({ redraft }));
  });

  it('of an issuer are those of AUTH_SCOPE for the metrics too, unless set', async () => {
    const other = await TestApplication.start({
      AUTH_ISSUER: provider.issuer,
      AUTH_AUDIENCE: AUDIENCE,
      AUTH_SCOPE: 'plants:create',
    });
    const authorization = `Bearer ${await provider.accessToken({ scope: '' })}`;

    const response = await other.app.inject({ url: '/metrics', headers: { authorization } });

    expectForbidden(response, 'plants:create');
    await other.stop();
  });
});

@Controller('who')
class WhoController {
  @Get()
  who(@Req() request: { caller?: Caller }): Caller | undefined {
    return request.caller;
  }
}

describe('a Nest application that mounts guard and verifier', () => {
  const tokensFile = join(useFolder(), 'tokens.txt');
  let app: NestFastifyApplication | undefined;
  beforeEach(() => {
    stopClock();
    jest.spyOn(Logger.prototype, 'log').mockImplementation();
  });
  afterEach(async () => {
    await app?.close();
    app = undefined;
    jest.restoreAllMocks();
    releaseClock();
  });

  async function start(options: AuthOptions): Promise<void> {
    @Module({
      controllers: [WhoController],
      providers: [
        { provide: APP_GUARD, useClass: BearerGuard },
        { provide: TokenVerifier, useFactory: () => new TokenVerifier(options) },
      ],
    })
    class HostModule {}

    const module = await Test.createTestingModule({ imports: [HostModule] }).compile();
    app = module.createNestApplication<NestFastifyApplication>(new FastifyAdapter());
    await app.init();
  }

  async function who(token: string): Promise<unknown> {
    const response = await app?.inject({
      url: '/who',
      headers: { authorization: `Bearer ${token}` },
    });
    return response?.json();
  }

  it('finds the caller on the request, whatever the source of the token, and never the token', async () => {
    const provider = await OpenIdProvider.start(makeKey('ES256'));
    writeFileSync(tokensFile, 'from-the-file laptop');
    await start({ tokens: ['as-it-is'], tokensFile, issuer: provider.issuer, audience: AUDIENCE });

    const jwt = await provider.accessToken();

    expect(await who('as-it-is')).toEqual({ name: 'token 1' });
    expect(await who('from-the-file')).toEqual({ name: 'laptop' });
    expect(await who(jwt)).toEqual({ name: AUDIENCE, issuer: provider.issuer });
    expect(await who('unknown')).toMatchObject({ error: 40101 });
    await provider.stop();
  });

  it('stops following file and issuer when it is closed', async () => {
    const provider = await OpenIdProvider.start(makeKey('ES256'));
    writeFileSync(tokensFile, '');
    await start({ tokensFile, issuer: provider.issuer, audience: AUDIENCE });
    expect(await who(await provider.accessToken())).toMatchObject({ name: AUDIENCE });
    expect(jest.getTimerCount()).toBe(2);

    await app?.close();

    expect(jest.getTimerCount()).toBe(0);
    await provider.stop();
  });

  it('refuses every token without options', async () => {
    await start({});
    expect(await who('anything')).toMatchObject({ error: 40101 });
  });

  it.each<[AuthOptions, string]>([
    [
      { tokens: ['valid', 'a secret'] },
      'tokens: token 2 has an invalid field: after the token, only scope=create or scope=metrics may follow',
    ],
    [
      { tokens: ['valid', 'metrics'] },
      'tokens: token 2 is the name of a scope, not a token: scopes are written as scope=create scope=metrics',
    ],
    [{ issuer: 'https://id.example' }, 'issuer requires audience'],
    [{ issuer: 'https://id.example', audience: [] }, 'issuer requires audience'],
    [
      { issuer: 'https://id.example', audience: ['x', ''] },
      'audience must be a text or a list of texts',
    ],
    [{ audience: 'x', scope: 'y' }, 'audience requires issuer; scope requires issuer'],
  ])('does not start with %j', async (options, message) => {
    await expect(start(options)).rejects.toMatchObject({ name: 'TypeError', message });
  });
});
