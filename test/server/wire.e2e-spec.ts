import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { ErrorBody } from '../../src/plants';
import { TestApplication, TOKEN } from '../support/application';
import { errorBodies as errors, errorNumbers } from '../support/error-bodies';
import * as load from '../support/load';
import { readMetric } from '../support/metrics';
import { exchange, openConnection, readResponses } from '../support/wire';

/** The beginnings of a create request without and with a token, and of a chunked body. */
const POST = 'POST /plants HTTP/1.1\r\nHost: x\r\n';
const AUTHORIZED = `${POST}Authorization: Bearer ${TOKEN}\r\n`;
const CHUNKED = 'Transfer-Encoding: chunked\r\n\r\n';

/** Creates the bytes of a valid create request with additional headers. */
const creation = (id: number, ...fields: string[]): string =>
  load.createRequest(id).text.replace('Host: x', ['Host: x', ...fields].join('\r\n'));

const rejected = (body: ErrorBody) => ({ status: Math.floor(body.error / 100), body });

describe('HTTP on the wire', () => {
  const application = TestApplication.use();
  const send = (request: string) => exchange(application.url, request);
  const connected = () => openConnection(application.url);

  // targets.e2e-spec.ts tests further invalid headers, with any target.
  it.each<[string, string, ErrorBody]>([
    ['garbage', 'garbage\r\n\r\n', errors.malformedRequest],
    ['two lengths', `${POST}${'Content-Length: 1\r\n'.repeat(2)}\r\n{`, errors.malformedRequest],
    ['two framings', `${POST}Content-Length: 1\r\n${CHUNKED}`, errors.malformedRequest],
    ['a broken chunk', `${AUTHORIZED}${CHUNKED}xyz\r\n`, errors.malformedRequest],
    [
      'a second Host as the last of many headers',
      `${POST}${'a:\r\n'.repeat(990)}Host: b\r\n\r\n`,
      errors.missingHost,
    ],
    [
      'more headers than Node.js allows',
      `${POST}${'a:\r\n'.repeat(1000)}\r\n`,
      errors.headersTooLarge,
    ],
    ...'a/b|user@a|a:port|a, b|[::1|[zz]|[1,2]|[::g]|[::1%25x]|a%2|\u00e4'
      .split('|')
      .map((host): [string, string, ErrorBody] => [
        `the Host ${host}`,
        `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
        errors.malformedHost,
      ]),
    [
      'two media types',
      creation(10, 'Content-Type: application/json', 'Connection: close'),
      errors.mediaType,
    ],
    [
      'a body in chunks that is too long, and goes on',
      `${AUTHORIZED}Content-Type: application/json\r\n${CHUNKED}200000\r\n${'x'.repeat(2 ** 20 + 1)}`,
      errors.tooLarge,
    ],
    ['OPTIONS *', 'OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n', errors.notFound],
    ['OPTIONS * without Host', 'OPTIONS * HTTP/1.1\r\n\r\n', errors.missingHost],
    ['a request line without version', 'GET /\r\n\r\n', errors.missingVersion],
    ['a second expectation', `${POST}Expect: 100-continue, x\r\n\r\n`, errors.expectationFailed],
    ['a method nobody knows', 'BREW / HTTP/1.1\r\nHost: x\r\n\r\n', errors.unknownMethod],
    [
      'a last transfer coding other than chunked',
      `${POST}Transfer-Encoding: gzip\r\n\r\n`,
      errors.lastCoding,
    ],
    // prettier-ignore
    ...[
      'http://u:p@x/plants', 'http://[zz]/plants', 'http:///plants', 'https://x/plants',
      'ftp://x/plants', '/plants#f', '/plants?<>', '*', '*plants', '/..%c0%af..', '/%zz',
    ].map((target): [string, string, ErrorBody] => [
      `the target ${target}`,
      POST.replace('/plants', target) + '\r\n',
      errors.malformedTarget,
    ]),
    ['the target x:443', POST.replace('/plants', 'x:443') + '\r\n', errors.malformedRequest],
  ])('responds to %s with the Error body', async (_what, request, body) => {
    const responses = await send(request);

    expect(responses).toEqual([{ ...rejected(body), headers: expect.anything() as unknown }]);
    expect(responses[0]?.headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      connection: 'close',
      'x-request-id': expect.any(String) as string,
      date: expect.stringMatching(/ GMT$/) as string,
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
      'content-security-policy':
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    });
  });

  it.each(['x', 'localhost:3000', '127.0.0.1', '[::1]:80', '', 'a_b.example', 'x%20y:'])(
    'accepts Host: %j',
    async (host) => {
      const request = `GET /health/live HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;

      expect(await send(request)).toMatchObject([{ status: 200 }]);
    },
  );

  it('accepts HTTP/1.0 without Host', async () => {
    expect(await send('GET /health/live HTTP/1.0\r\n\r\n')).toMatchObject([{ status: 200 }]);
  });

  it.each([
    [',', [200]],
    ['100-CONTINUE, 100-continue,', [100, 200]],
  ])('accepts Expect: %j', async (expectation, statuses) => {
    const request = creation(61 + statuses.length, `Expect: ${expectation}`, 'Connection: close');

    const responses = await send(request.replace('/plants', '/plants?'));

    expect(responses.map(({ status }) => status)).toEqual(statuses);
  });

  it.each([
    [
      'a body that is too long',
      `${AUTHORIZED}Content-Type: application/json\r\nContent-Length: ${2 ** 24}\r\n\r\n`,
      errors.tooLarge,
    ],
    ['a body behind a broken chunk', `${POST}${CHUNKED}xyz\r\n`, errors.malformedRequest],
    [
      'a body to no path',
      `PUT /nope HTTP/1.0\r\nContent-Length: ${2 ** 22}\r\n\r\n`,
      errors.notFound,
    ],
    [
      'more behind a request that closes the connection',
      `${POST}Connection: close\r\n\r\n`,
      errors.missingCredentials,
    ],
  ])('lets a client that is still sending %s read the response', async (_what, head, response) => {
    // The client reads only after it has sent the whole body. An announced body exceeds all buffers.
    const body = 'x'.repeat(head.includes('Content-Length') ? 2 ** 22 : 2 ** 19);
    for (let times = 0; times < 5; times++) {
      const socket = connected().pause();
      socket.on('error', () => undefined);
      await new Promise((resolve) => socket.write(head + body, resolve));
      const responses = socket.destroyed ? [] : readResponses(socket);
      socket.resume();

      expect(await responses).toMatchObject([rejected(response)]);
    }
  });

  // segmentations.e2e-spec.ts tests everything else that closes a connection.
  it.each([
    ['a rejected HEAD', 'HEAD / HTTP/1.1\r\nHost: a b\r\n\r\n', [{ status: 400, body: null }]],
    ['CONNECT', 'CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n', []],
  ])('processes nothing after %s, in one segment or later', async (_what, end, responses) => {
    for (const later of [false, true]) {
      const socket = connected();
      socket.on('error', () => undefined);
      socket.write(later ? end : end + creation(30));
      if (later) setTimeout(() => socket.write(creation(30)), 150);
      expect(await readResponses(socket)).toMatchObject(responses);
    }
    expect(application.store.plants()).not.toContainEqual({ id: 30n, name: 'Fern' });
  });

  it('does not log a client disconnect during the body as a server error', async () => {
    const socket = connected();
    socket.write(creation(14).slice(0, -5));
    const [request] = (await once(application.app.getHttpServer(), 'request')) as [IncomingMessage];
    socket.resetAndDestroy();
    await once(request, 'error');

    const failures = await readMetric(
      application.url,
      `plant_store_errors_total{error="${errorNumbers.internal}"}`,
    );
    expect(failures).toBe(0);
  });
});

describe('a service with short timeouts', () => {
  const application = TestApplication.use({ HEADERS_TIMEOUT: '500ms', REQUEST_TIMEOUT: '1s' });

  it.each([
    ['the header section', POST],
    ['the body', creation(1).slice(0, -5)],
    ['anything', ''],
  ])('returns 408 to a client that does not send %s in time', async (_what, beginning) => {
    const responses = await exchange(application.url, beginning);

    expect(responses).toMatchObject([rejected(errors.requestTimeout)]);
  });
});
