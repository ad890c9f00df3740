/** Changes token files and keys while the service, a process, runs. Some tests need Linux. */
import { readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { join } from 'node:path';
import type { LightMyRequestResponse } from 'fastify';
import { type Scope, scopeNames } from '../../src/plants/auth/scopes';
import { hashToken } from '../../src/plants/auth/token-list';
import { toTestResponse, TestApplication } from '../support/application';
import { createPlantOperation, expectDeclaredResponse } from '../support/contract';
import { errorBodies } from '../support/error-bodies';
import { listen } from '../support/listen';
import { AUDIENCE, OpenIdProvider, type TokenDraft } from '../support/openid-provider';
import { plantStore } from '../support/plant-store';
import { describeOnLinux } from '../support/run';
import { type ServiceProcess, useServiceHome } from '../support/service-process';
import { until } from '../support/until';
import { openConnection } from '../support/wire';

/** A certificate for localhost that it has signed itself. */
const CERTIFICATE = join(__dirname, '../support/tls/server.crt');

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

  it('starts and accepts the tokens of an issuer while another one is down', async () => {
    const up = await OpenIdProvider.start();
    const down = await OpenIdProvider.start();
    const tokens = [await up.requestAccessToken(), await down.requestAccessToken()];
    const redraft = ({ payload }: TokenDraft): unknown =>
      Object.assign(payload, { iss: down.issuer });
    const forged = await up.requestAccessToken(redraft);
    const statuses = () => Promise.all(tokens.map((token) => post(`Bearer ${token}`)));
    await down.stop();
    const AUTH_ISSUER = `${up.issuer} ${down.issuer}`;
    service = await home.start({ ...trust(up), AUTH_ISSUER });
    const metrics = new URL('/metrics', await service.url());
    const headers = { authorization: `Bearer ${tokens[0]}` };
    /** Reads whether the keys of each issuer are valid. */
    const readValidity = async () => {
      const text = await (await fetch(metrics, { headers })).text();
      return [up, down].map(({ issuer }) =>
        Number(text.split(`plant_store_issuer_keys_valid{issuer="${issuer}"} `)[1]?.[0]),
      );
    };

    expect(await statuses()).toEqual([200, 503]);
    expect(await readValidity()).toEqual([1, 0]);
    await down.start();
    tokens[1] = await down.requestAccessToken();
    // The keys are fetched again 10 seconds after the last attempt.
    await until(async () => !(await statuses()).includes(503));
    expect(await statuses()).toEqual([200, 200]);
    expect(await readValidity()).toEqual([1, 1]);
    expect(await post(`Bearer ${forged}`)).not.toBe(200);

    for (const provider of [up, down]) await provider.stop();
    // It stops at once, although an issuer is down.
    expect(await service.end()).toEqual({ code: 0, signal: null });
    const url = `${down.issuer}/.well-known/openid-configuration`;
    const line = `The keys of ${down.issuer} cannot be fetched: ${url} does not respond: connect `;
    expect(service.stdout).toContain(line);
    const checked = await plantStore(['check'], { ...trust(up), AUTH_ISSUER });
    expect(checked.stdout).toContain(
      `FAILED  issuer: The keys of ${up.issuer} cannot be fetched: `,
    );
    expect(checked.stdout).toContain(`; The keys of ${down.issuer} cannot be fetched: `);
  });

  it('fetches the keys behind a proxy with TLS, if the URL of the issuer cannot be reached', async () => {
    const issuer = 'https://login.example.org/realms/garden';
    const provider = await OpenIdProvider.start(undefined, issuer);
    const forward = (request: IncomingMessage, response: ServerResponse) =>
      void fetch(`${provider.url}${request.url}`)
        .then((keys) => keys.text())
        .then((keys) => response.end(keys));
    const cert = readFileSync(CERTIFICATE);
    const key = readFileSync(CERTIFICATE.replace('.crt', '.key'));
    const proxy = createServer({ cert, key }, forward);
    const { port } = await listen(proxy);
    const trusted = {
      AUTH_ISSUER: issuer,
      AUTH_AUDIENCE: AUDIENCE,
      NODE_EXTRA_CA_CERTS: CERTIFICATE,
    };
    const keys = { AUTH_JWKS_URL: `https://localhost:${port}/jwks` };

    service = await home.start({ ...trusted, ...keys });

    expect(await post(`Bearer ${await provider.requestAccessToken()}`)).toBe(200);
    proxy.close();
    await provider.stop();
  });

  describeOnLinux(() => {
    it('revokes a token that was removed while no file could be opened', async () => {
      writeTokens('unused-in-the-file');
      const wrapper = ['prlimit', '--nofile=64'];
      service = await home.start({ AUTH_TOKENS: '', AUTH_TOKENS_FILE: 'tokens.txt' }, wrapper);
      // After two changes, the first look of the service, shortly after its start, is over.
      for (const [index, token] of ['first-in-the-file', 'removed-from-the-file'].entries()) {
        writeTokens(token);
        await service.waitForOutput(new RegExp(`(?:reloaded[^]*){${index + 1}}`));
      }
      const url = await service.url();
      const sockets = Array.from({ length: 64 }, () => openConnection(url));

      writeTokens('expired-in-the-file ci 2020-01-01T00:00:00Z');
      await service.waitForOutput(/EMFILE/);
      for (const socket of sockets) socket.destroy();

      await until(async () => (await post('Bearer removed-from-the-file').catch(() => 0)) === 401);
      expect(service.stdout).toContain('has no token that is valid now.');
      const environment = { AUTH_TOKENS_FILE: join(home.folder, 'tokens.txt') };
      const { code, stdout } = await plantStore(['check'], environment);
      expect([code, stdout]).toEqual([
        1,
        expect.stringContaining('FAILED  tokens: AUTH_TOKENS_FILE'),
      ]);
    });
  });

  it('never logs a token, at any level', async () => {
    const provider = await OpenIdProvider.start();
    const listed = 'listed-in-the-environment';
    const inFile = 'listed-in-the-file';
    const expired = 'expired-in-the-file';
    const unknown = 'unknown-to-everybody';
    writeTokens(`${inFile} ci`, `${expired} old 2020-01-01T00:00:00Z`);
    service = await home.start({
      AUTH_TOKENS: listed,
      AUTH_TOKENS_FILE: 'tokens.txt',
      ...trust(provider),
      LOG_LEVEL: 'trace',
      ACCESS_LOG: 'true',
    });
    const jwt = await provider.requestAccessToken();
    const redraft = ({ header, payload }: TokenDraft): void => {
      Object.assign(header, { kid: 'unknown-kid' });
      Object.assign(payload, { aud: 'other' });
    };
    const badJwt = await provider.requestAccessToken(redraft);

    const statuses = [];
    for (const token of [listed, inFile, expired, unknown, jwt, `${jwt}x`, badJwt]) {
      statuses.push(await post(`Bearer ${token}`));
      await post('', `?access_token=${token}`);
      await post(`Bearer ${token}, Bearer ${token}`);
      await post(`Basic ${token}`);
    }
    writeTokens(`${inFile} 2027 broken`);
    await provider.stop();
    await service.end();

    expect(statuses).toEqual([200, 200, 401, 401, 200, 401, 503]);
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
  let provider: OpenIdProvider;
  let application: TestApplication;
  let nextId = 1;
  beforeAll(async () => {
    provider = await OpenIdProvider.start();
    application = await TestApplication.start({
      AUTH_TOKENS: [
        ...scopeNames.map((scope) => `only-${scope} scope=${scope}`),
        `all-scopes ${scopeNames.map((scope) => `scope=${scope}`).join(', ')}`,
        'any-scope',
      ].join(),
      ...trust(provider),
      AUTH_SCOPE: 'plants:create plants:read',
      AUTH_SCOPE_METRICS: 'plants:read',
    });
  });
  afterAll(async () => {
    await application.stop();
    await provider.stop();
  });

  /** Returns the scope that a rejection names as missing; undefined if the request was admitted. */
  function missingIn(response: LightMyRequestResponse): string | undefined {
    if (response.statusCode === 200) return undefined;
    expectDeclaredResponse(createPlantOperation, toTestResponse(response));
    expect(response.json()).toEqual(errorBodies.forbidden);
    const challenge = /^Bearer realm="plants", error="insufficient_scope", scope="(.*)"$/;
    return challenge.exec(String(response.headers['www-authenticate']))?.[1] ?? 'none is named';
  }

  /** Sends a request that needs each scope. */
  const requests: Record<Scope, (authorization: string) => Promise<LightMyRequestResponse>> = {
    create: (authorization) =>
      application.post(`{"id":${nextId++},"name":"Fern"}`, { authorization }),
    metrics: (authorization) =>
      application.app.inject({ url: '/metrics', headers: { authorization } }),
  };

  /** Returns the scope tokens that a token lacks for each scope. */
  async function missing(token: string): Promise<Partial<Record<Scope, string | undefined>>> {
    const found: Partial<Record<Scope, string | undefined>> = {};
    for (const scope of scopeNames) {
      found[scope] = missingIn(await requests[scope](`Bearer ${token}`));
    }
    return found;
  }

  it.each(scopeNames)('allow a token with scope=%s only that', async (scope) => {
    const others = scopeNames.filter((other) => other !== scope);

    expect(await missing(`only-${scope}`)).toEqual({
      [scope]: undefined,
      ...Object.fromEntries(others.map((other) => [other, other])),
    });
  });

  it.each(['all-scopes', 'any-scope'])('allow the token %s everything', async (token) => {
    for (const lacked of Object.values(await missing(token))) expect(lacked).toBeUndefined();
  });

  const all = 'plants:create plants:read';
  it.each<[object, string | undefined, string | undefined]>([
    [{ scope: 'plants:read plants:create' }, undefined, undefined],
    [{ scope: undefined, scp: all.split(' ') }, undefined, undefined],
    [{ scope: ['plants:create'], scp: 'plants:read x' }, undefined, undefined],
    [{ scope: undefined, roles: all.split(' ') }, undefined, undefined],
    [{ scope: 'plants:create', permissions: ['plants:read', 7] }, undefined, undefined],
    [{ scope: 'plants:create' }, all, 'plants:read'],
    [{ scope: 'plants:read' }, all, undefined],
  ])('of a JWT decide what it may do: %j', async (claims, create, metrics) => {
    const redraft = ({ payload }: TokenDraft): unknown => Object.assign(payload, claims);
    const token = await provider.requestAccessToken(redraft);

    // The second result comes from the cache.
    for (let time = 0; time < 2; time++) expect(await missing(token)).toEqual({ create, metrics });
  });

  it('of AUTH_SCOPE apply to metrics unless AUTH_SCOPE_METRICS is set', async () => {
    const environment = { ...trust(provider), AUTH_SCOPE: 'plants:create' };
    const other = await TestApplication.start(environment);
    const authorization = `Bearer ${await provider.requestAccessToken()}`;

    const response = await other.app.inject({ url: '/metrics', headers: { authorization } });

    expect(missingIn(response)).toBe('plants:create');
    await other.stop();
  });
});
