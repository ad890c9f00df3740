import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LightMyRequestResponse } from 'fastify';
import { answerOf, TestApplication } from '../support/application';
import { expectAsDeclared } from '../support/contract';
import { errorBodies } from '../support/error-bodies';
import { makeFolder, removeFolder } from '../support/folder';
import { AUDIENCE, makeKey, OpenIdProvider } from '../support/openid-provider';

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
      AUTH_SCOPE: 'plants:create',
      AUTH_SCOPE_METRICS: 'plants:read',
    });
  });
  afterAll(async () => {
    await application.stop();
    await provider.stop();
    removeFolder(folder);
  });

  const create = (token: string) =>
    application.post(`{"id":${nextId++},"name":"Fern"}`, { authorization: `Bearer ${token}` });
  const readMetrics = (token: string) =>
    application.app.inject({ url: '/metrics', headers: { authorization: `Bearer ${token}` } });

  function expectForbidden(response: LightMyRequestResponse, scope: string): void {
    expectAsDeclared(answerOf(response));
    expect(response.statusCode).toBe(403);
    expect(response.json()).toEqual(errorBodies.forbidden);
    expect(response.headers['www-authenticate']).toBe(
      `Bearer realm="plants", error="insufficient_scope", scope="${scope}"`,
    );
  }

  it.each(['creator', 'file-creator'])('let %s create plants and nothing else', async (token) => {
    expect((await create(token)).statusCode).toBe(200);
    expectForbidden(await readMetrics(token), 'metrics');
  });

  it.each(['scraper', 'file-scraper'])(
    'let %s read the metrics and nothing else',
    async (token) => {
      expect((await readMetrics(token)).statusCode).toBe(200);
      expectForbidden(await create(token), 'create');
    },
  );

  it.each(['both', 'file-both', 'all', 'file-all'])('let %s do both', async (token) => {
    expect((await create(token)).statusCode).toBe(200);
    expect((await readMetrics(token)).statusCode).toBe(200);
  });

  it('are judged before the body', async () => {
    expectForbidden(await application.post('{', { authorization: 'Bearer scraper' }), 'create');
  });

  it.each([
    ['plants:create', 200, 403],
    ['plants:read', 403, 200],
    ['', 403, 403],
    ['plants:read plants:create', 200, 200],
  ])('of an issuer decide: %s', async (scope, creation, metrics) => {
    const token = await provider.accessToken({ scope });

    // The second time from the cache.
    for (let time = 0; time < 2; time++) {
      expect((await create(token)).statusCode).toBe(creation);
      expect((await readMetrics(token)).statusCode).toBe(metrics);
    }
  });

  it('of an issuer are named in the challenge', async () => {
    const token = await provider.accessToken({ scope: '' });

    expectForbidden(await create(token), 'plants:create');
    expectForbidden(await readMetrics(token), 'plants:read');
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
