/** Reads the log of the service, a process. Tests of a full or stalled output need Linux. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { errorBodies, errorNumbers } from '../support/error-bodies';
import { TOKEN } from '../support/application';
import { findFreePort } from '../support/free-port';
import { AUDIENCE } from '../support/openid-provider';
import { describeOnLinux } from '../support/run';
import { type ServiceProcess, useServiceHome } from '../support/service-process';
import { lockDatabase } from '../support/sqlite';
import { until } from '../support/until';
import { exchange } from '../support/wire';

const FERN = '{"id":1,"name":"Fern"}';
const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

describe('the log', () => {
  const home = useServiceHome();
  let service: ServiceProcess;

  /** Stops the service, and returns the log lines about errors. */
  async function failures(): Promise<Record<string, unknown>[]> {
    await service.end();
    return service.lines.filter(({ context }) => context === 'Errors');
  }

  it('contains one line per 5xx with the error number, cause, request id and trace id', async () => {
    const AUTH_ISSUER = 'http://127.0.0.1:2';
    service = await home.start({ AUTH_ISSUER, AUTH_AUDIENCE: AUDIENCE });
    const parts = ['{"alg":"ES256","typ":"at+jwt"}', JSON.stringify({ iss: AUTH_ISSUER })];
    const [header, claims] = parts.map((part) => Buffer.from(part).toString('base64url'));
    const authorization = `Bearer ${header}.${claims}.AA`;
    await service.post(FERN, { authorization, 'x-request-id': 'abc', traceparent: TRACEPARENT });

    const lines = await failures();
    expect(JSON.stringify(lines).match(/abc|Nothing was stored/g)).toHaveLength(2);
    expect(lines).toMatchObject([
      {
        level: 50,
        requestId: 'abc',
        traceparent: TRACEPARENT,
        msg: expect.stringMatching(`^${errorNumbers.unavailable} `) as string,
        err: { message: expect.stringMatching(/cannot be fetched/) as string },
      },
    ]);
  });

  it('contains a store failure once, and a limited number of error lines', async () => {
    service = await home.start();
    const lock = lockDatabase(home.file);
    await Promise.all(
      Array.from({ length: 50 }, (_, id) => service.post(`{"id":${id},"name":"Fern"}`)),
    );
    lock.close();

    const lines = await failures();
    expect(lines.length).toBeGreaterThanOrEqual(10);
    expect(lines.length).toBeLessThan(50);
    expect(service.stdout.match(/plants\.db: [^"]*database is locked/g)).toHaveLength(1);
  });

  it('contains a rejected token, at most one per second, and no other line for a request by default', async () => {
    service = await home.start({ TRUSTED_PROXIES: '127.0.0.1' });
    const post = (authorization: string, address: string) =>
      service.post(FERN, { authorization, 'x-forwarded-for': address, 'x-request-id': address });
    // These are not bearer credentials.
    await post('Basic a-secret', '192.0.2.1');
    for (let last = 2; last < 22; last++) await post('Bearer a-secret', `192.0.2.${last}`);
    await service.end();

    const lines = service.lines.filter(({ ip }) => ip !== undefined);
    const { error, message } = errorBodies.invalidToken;
    const line = { level: 40, msg: `Rejected a token: ${message}`, error, ip: '192.0.2.2' };
    expect(lines[0]).toMatchObject({ ...line, requestId: '192.0.2.2' });
    expect(lines.length).toBeLessThan(20);
    expect(service.stdout).not.toMatch(/a-secret|"request"/);
  });

  describe('with ACCESS_LOG=true', () => {
    const BIG = '9007199254740993';
    const ORIGIN = 'https://app.example.org';

    async function start(environment?: NodeJS.ProcessEnv): Promise<void> {
      const AUTH_TOKENS_FILE = join(home.folder, 'tokens.txt');
      writeFileSync(AUTH_TOKENS_FILE, 'valid ci\nscraper prometheus scope=metrics\n');
      service = await home.start({ ACCESS_LOG: 'true', AUTH_TOKENS_FILE, ...environment });
    }

    /** Stops the service, and returns some fields of the log lines about requests. */
    async function requests(...fields: string[]): Promise<unknown[]> {
      await service.end();
      const written = service.lines.filter(({ msg }) => msg === 'request');
      return written.map((line) => Object.fromEntries(fields.map((name) => [name, line[name]])));
    }

    it('contains the caller, the id and the outcome of a create request', async () => {
      await start({ LOG_LEVEL: 'trace', BODY_LIMIT: '1KiB', CORS_ORIGINS: ORIGIN });
      const post = (body: string, token = 'valid', headers = {}) =>
        service.post(body, { authorization: `Bearer ${token}`, ...headers });
      const key = { 'idempotency-key': 'secret-key' };
      await post(`{"id":${BIG},"name":"secret"}`, 'valid', key);
      await post(`{"id":${BIG},"name":"secret"}`, 'valid', key);
      await post(`{"id":${BIG}.0,"name":"secret"}`, TOKEN);
      await post('');
      await post(`{"id":1,"name":"${'secret'.repeat(200)}"}`);
      await post('{}', 'bad-secret');
      await post('{}', 'scraper');
      const lock = lockDatabase(home.file);
      await post('{"id":-2,"name":"secret"}');
      lock.close();
      await fetch(new URL('/plants', await service.url()), {
        method: 'OPTIONS',
        headers: { origin: ORIGIN, 'access-control-request-method': 'POST' },
      });

      const { idTaken, empty, tooLarge, invalidToken, forbidden, unavailable } = errorNumbers;
      expect(await requests('status', 'error', 'caller', 'id', 'outcome')).toEqual([
        { status: 200, caller: 'ci', id: BIG, outcome: 'created' },
        { status: 200, caller: 'ci', id: BIG, outcome: 'replayed' },
        { status: 400, error: idTaken, caller: 'token 1', id: BIG, outcome: 'taken' },
        { status: 400, error: empty, caller: 'ci', outcome: 'invalid' },
        { status: 400, error: tooLarge, caller: 'ci', outcome: 'invalid' },
        { status: 401, error: invalidToken },
        { status: 403, error: forbidden, caller: 'prometheus' },
        { status: 503, error: unavailable, caller: 'ci', id: '-2', outcome: 'unavailable' },
        { status: 204 },
      ]);
      expect(service.stdout + service.stderr).not.toMatch(new RegExp(`secret|${TOKEN}`));
    });

    it('contains rejected requests once each, with the client address, but without queries, passwords and tokens', async () => {
      await start({ TRUSTED_PROXIES: '127.0.0.0/8 192.0.2.0/24 ::1' });
      const url = await service.url();
      const send = (line: string, ...headers: string[]) =>
        exchange(url, [`${line} HTTP/1.1`, 'Connection: close', ...headers, '', ''].join('\r\n'));
      const forwarded =
        'X-Forwarded-For: 203.0.113.9, 198.51.100.4:51234, [::1]:443, 192.0.2.1:443';
      await send('GET /nothing?access_token=secret', 'Host: x');
      await send('GET http://user:secret@x/%zz?secret', 'Host: x', forwarded);
      await send('POST /plants?secret', 'Host: x', 'Expect: secret');
      await send('POST /plants', 'Host: secret', 'Host: secret');
      await send('GET /x', 'Host: x', 'X-Forwarded-For: {"level":60}', 'traceparent: \x9b31m');
      await send('POST /plants', 'Host: x', 'Authorization: Bearer scraper', forwarded);

      const { notFound, malformedRequest, expectationFailed, forbidden } = errorNumbers;
      const ip = '127.0.0.1';
      const client = '198.51.100.4';
      expect(await requests('ip', 'path', 'error', 'caller')).toEqual([
        { ip, path: '/nothing', error: notFound },
        { ip: client, path: '/%zz', error: malformedRequest },
        { ip, path: '/plants', error: expectationFailed },
        { ip, path: '/plants', error: malformedRequest },
        { path: '/x', error: notFound },
        { ip: client, path: '/plants', error: forbidden, caller: 'prometheus' },
      ]);
      expect(service.stdout).not.toMatch(/secret|scraper|traceparent/);
    });
  });
});

describeOnLinux(() => {
  const home = useServiceHome();

  it.each([
    ['that is full', '/dev/full'],
    ['that is a pipe without a reader', 'pipe'],
  ])('a log output %s does not stop the service', async (_what, output) => {
    execFileSync('mkfifo', [join(home.folder, 'pipe')]);
    const PORT = String(await findFreePort());
    // The pipe is also opened for reading, so opening it does not wait for a reader.
    const wrapper = ['sh', '-c', `exec "$0" "$@" 1<> ${output}`];
    const service = home.spawn({ PORT, ACCESS_LOG: 'true', SHUTDOWN_TIMEOUT: '5m' }, wrapper);
    const url = new URL(`http://127.0.0.1:${PORT}/${'x'.repeat(4000)}`);
    await until(() => fetch(url).then(Boolean, () => false));

    for (let round = 0; round < 10; round++) {
      const responses = await Promise.all(Array.from({ length: 10 }, () => fetch(url)));
      expect(responses.map(({ status }) => status)).toEqual(Array(10).fill(404));
    }

    // Node.js cannot exit while a write to a pipe is blocked.
    const signal = output === 'pipe' ? 'SIGKILL' : 'SIGTERM';
    const end = output === 'pipe' ? { code: null, signal } : { code: 0, signal: null };
    expect(await service.end(signal)).toEqual(end);
  });
});
