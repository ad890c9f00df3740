import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { formatTokenEntry, hashToken } from '../../src/auth';
import { TOKEN } from '../support/application';
import { makeFolder, removeFolder } from '../support/folder';
import { AUDIENCE, makeKey, OpenIdProvider } from '../support/openid-provider';
import { ServiceProcess } from '../support/service-process';

describe('the service with a token file or an issuer', () => {
  let folder: string;
  let file: string;
  let service: ServiceProcess;
  let nextId = 1;
  beforeEach(() => {
    folder = makeFolder();
    file = join(folder, 'tokens.txt');
  });
  afterEach(async () => {
    service.kill('SIGKILL');
    await service.ended;
    removeFolder(folder);
  });

  async function post(authorization: string, query = ''): Promise<number> {
    const body = `{"id":${nextId++},"name":"Fern"}`;
    const response = await service.post(body, { authorization }, query);
    await response.arrayBuffer();
    return response.status;
  }

  it('refuses a token within 5 s of its removal, and serves the others without interruption', async () => {
    writeFileSync(file, 'kept\nremoved\n');
    service = await ServiceProcess.start(folder, { AUTH_TOKENS_FILE: 'tokens.txt' });
    expect(await post('Bearer removed')).toBe(200);

    writeFileSync(file, 'kept\nadded\n');
    const start = performance.now();
    const kept: number[] = [];
    do {
      await setTimeout(20);
      kept.push(await post('Bearer kept'), await post(`Bearer ${TOKEN}`));
    } while ((await post('Bearer removed')) === 200);

    expect(performance.now() - start).toBeLessThan(5000);
    expect(await post('Bearer added')).toBe(200);
    expect(new Set(kept)).toEqual(new Set([200]));
  });

  it('starts in production with the tokens of a file alone', async () => {
    writeFileSync(file, 'valid');
    service = await ServiceProcess.start(folder, {
      NODE_ENV: 'production',
      AUTH_TOKENS: '',
      AUTH_TOKENS_FILE: file,
    });

    expect(await post('Bearer valid')).toBe(200);
    expect(service.stdout).not.toContain('curl');
  });

  it.each([
    [
      'does not exist',
      undefined,
      /^The token file \S+ cannot be used: ENOENT[^\n]* \(AUTH_TOKENS_FILE\)\.\n$/,
    ],
    [
      'is invalid',
      'a\nb c d\n',
      /^The token file \S+ cannot be used: line 2 has an invalid field: [^\n]* \(AUTH_TOKENS_FILE\)\.\n$/,
    ],
  ])('ends with one sentence when the file %s', async (_what, content, sentence) => {
    if (content !== undefined) writeFileSync(file, content);
    service = new ServiceProcess(folder, { AUTH_TOKENS_FILE: file });

    expect(await service.ended).toEqual({ code: 1, signal: null });
    expect(service.stderr).toMatch(sentence);
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
    expect(service.stdout).toContain(
      `The keys of ${issuer} cannot be fetched: connect ECONNREFUSED`,
    );
    expect(service.stdout).toContain(
      `The keys of ${issuer} are not available: connect ECONNREFUSED`,
    );
    for (const part of jwt.split('.')) expect(service.stdout).not.toContain(part);
  });

  it('never logs a token, at any level', async () => {
    const provider = await OpenIdProvider.start(makeKey('ES256'));
    const listed = 'listed-in-the-environment';
    const inFile = 'listed-in-the-file';
    const expired = 'expired-in-the-file';
    const unknown = 'unknown-to-everybody';
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
    for (const token of [
      listed,
      inFile,
      expired,
      unknown,
      ...jwt.split('.'),
      ...badJwt.split('.'),
    ]) {
      expect(written).not.toContain(token);
      expect(written).not.toContain(formatTokenEntry(hashToken(token)).slice('sha256:'.length));
    }
  });
});
