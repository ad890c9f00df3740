/** Sends bytes on real connections: pipelined, cut, malformed and hostile requests. */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import type { ErrorBody } from '../../src/plants';
import { TestApplication, TOKEN } from '../support/application';
import { errorBodies as errors, errorNumbers } from '../support/error-bodies';
import * as load from '../support/load';
import { readMetric } from '../support/metrics';
import { exchange, openConnection, readResponses } from '../support/wire';

/** The beginnings of a create request without and with a token, and of a chunked body. */
const POST = 'POST /plants HTTP/1.1\r\nHost: x\r\n';
const AUTHORIZED = `${POST}Authorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\n`;
const UNDECODABLE = POST.replace('/plants', '/%zz');
const UPGRADE = 'Connection: Upgrade\r\nUpgrade: h2c\r\n';
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;
const ALIVE = 'GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n';
const CHUNKED = 'Transfer-Encoding: chunked\r\n\r\n';

/** Creates the bytes of a valid create request with additional headers. */
const creation = (id: number, ...fields: string[]): string =>
  load.createRequest(id).text.replace('Host: x', ['Host: x', ...fields].join('\r\n'));

const rejected = (body: ErrorBody) => ({ status: Math.floor(body.error / 100), body });

describe('HTTP on the wire', () => {
  const application = TestApplication.use();
  const connected = () => openConnection(application.url);
  afterEach(() => {
    application.store.removePlants();
  });

  // prettier-ignore
  it.each<[string, string, ErrorBody]>([
    ['garbage', 'garbage\r\n\r\n', errors.malformedRequest],
    ['an unknown method', 'BREW / HTTP/1.1\r\nHost: x\r\n\r\n', errors.malformedRequest],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', errors.malformedRequest],
    ['a target without a path', POST.replace('/plants', 'x:443') + '\r\n', errors.malformedRequest],
    ['two lengths', `${POST}${'Content-Length: 1\r\n'.repeat(2)}\r\n{`, errors.malformedRequest],
    ['two framings', `${POST}Content-Length: 1\r\n${CHUNKED}`, errors.malformedRequest],
    ['a folded header', `${POST}X: a\r\n b\r\n\r\n`, errors.malformedRequest],
    ['bare line feeds', 'POST /plants HTTP/1.1\nHost: x\n\n', errors.malformedRequest],
    ['a space before a colon', `${POST}X : a\r\n\r\n`, errors.malformedRequest],
    ['a broken chunk', `${AUTHORIZED}${CHUNKED}xyz\r\n`, errors.malformedRequest],
    ['a long chunk extension', `${AUTHORIZED}${CHUNKED}1;${'x'.repeat(20_000)}\r\n`, errors.malformedRequest],
    ['large headers', `${POST}X: ${'x'.repeat(20_000)}\r\n\r\n`, errors.headersTooLarge],
    ['too many headers', `${POST}${'a:\r\n'.repeat(1000)}\r\n`, errors.headersTooLarge],
    ['no Host', 'POST /plants HTTP/1.1\r\n\r\n', errors.missingHost],
    ['no version', 'GET /\r\n\r\n', errors.unknownVersion],
    ['HTTP/0.9', ALIVE.replace('1.1', '0.9'), errors.unknownVersion],
    ['HTTP/2.0', ALIVE.replace('1.1', '2.0'), errors.unknownVersion],
    ['an expectation that contains a known one', `${POST}Expect: x100-continuex\r\nContent-Length: 0\r\n\r\n`, errors.expectationFailed],
    ['two Hosts', `${POST}Host: y\r\n\r\n`, errors.missingHost],
    ['a last coding other than chunked', `${POST}Transfer-Encoding: gzip\r\n\r\n`, errors.unknownCoding],
    ['an unknown coding', `${POST}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`, errors.unknownCoding],
    [
      'a coding in HTTP/1.0',
      `POST /plants HTTP/1.0\r\nConnection: keep-alive\r\n${CHUNKED}0\r\n\r\n`,
      errors.unknownCoding,
    ],
    ['no Host before `*` and a path', 'POST *plants HTTP/1.1\r\n\r\n', errors.missingHost],
    ['two Hosts at a path that cannot be decoded', `${UNDECODABLE}Host: y\r\n\r\n`, errors.missingHost],
    ['an unknown coding at such a path', `${UNDECODABLE}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`, errors.unknownCoding],
    [
      'a coding in HTTP/1.0 at such a path',
      `POST /%zz HTTP/1.0\r\nConnection: keep-alive\r\n${CHUNKED}0\r\n\r\n`,
      errors.unknownCoding,
    ],
    ['an unknown expectation at such a path', `${UNDECODABLE}Expect: x\r\n\r\n`, errors.expectationFailed],
    ['an upgrade without a token', `${POST}${UPGRADE}Content-Length: 0\r\n\r\n`, errors.missingCredentials],
    ['an upgrade at such a path', `${UNDECODABLE}${UPGRADE}\r\n`, errors.malformedTarget],
    ['an unknown expectation', `${POST}Expect: x\r\nContent-Length: 0\r\n\r\n`, errors.expectationFailed],
    ['`close`', `${POST}Connection: close\r\nContent-Length: 0\r\n\r\n`, errors.missingCredentials],
  ])('rejects %s with the Error body, and processes nothing after it', async (_what, request, body) => {
    const responses = await exchange(application.url, request + creation(1));

    expect(responses).toMatchObject([rejected(body)]);
    expect(responses[0]?.headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      connection: 'close',
      'x-request-id': expect.any(String) as string,
      date: expect.stringMatching(/ GMT$/) as string,
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    });
    expect(application.store.plants()).toEqual([]);
  });

  it('closes a connection with CONNECT, and processes nothing after it', async () => {
    const request = 'CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n';

    expect(await exchange(application.url, request + creation(1))).toEqual([]);
    expect(application.store.plants()).toEqual([]);
  });

  it.each(['/%zz', '/plants%', '//%ff', '*%zz'])(
    'rejects the target %s, which cannot be decoded, with the Error body',
    async (target) => {
      const request = POST.replace('/plants', target);

      const responses = await exchange(application.url, `${request}Connection: close\r\n\r\n`);

      expect(responses).toMatchObject([rejected(errors.malformedTarget)]);
    },
  );

  it('responds to a create request before invalid bytes that follow it', async () => {
    const responses = await exchange(application.url, `${creation(1)}garbage\r\n\r\n`);

    const headers = { connection: 'close' };
    expect(responses).toMatchObject([{ status: 200, headers, body: { name: 'Fern' } }]);
    expect(application.store.plants()).toHaveLength(1);
  });

  it('closes the connection after a body in chunks that is too long, and may go on', async () => {
    const body = `200000\r\n${'x'.repeat(2 ** 16 + 1)}`;

    expect(await exchange(application.url, AUTHORIZED + CHUNKED + body)).toMatchObject([
      { ...rejected(errors.tooLarge), headers: { connection: 'close' } },
    ]);
  });

  it.each([
    [
      'in the segment',
      (rest: string, socket: Socket) => socket.write(creation(1, UPGRADE.trim()) + rest),
    ],
    [
      'in later segments',
      async (rest: string, socket: Socket) => {
        socket.write(creation(1, UPGRADE.trim()).slice(0, -5));
        await once(application.app.getHttpServer(), 'request');
        socket.write(creation(1).slice(-5));
        // Node.js drops the rest of a segment, so the next one may begin anywhere.
        for (const part of [rest, rest, rest]) await setImmediate(socket.write(part));
      },
    ],
  ])('processes nothing behind a request that offers to upgrade, %s', async (_where, send) => {
    const socket = connected();
    const received = readResponses(socket);
    const body = creation(2);
    await send(`${POST}Content-Length: ${body.length}\r\n\r\n${body}`, socket);

    expect(await received).toMatchObject([{ status: 200, headers: { connection: 'close' } }]);
    expect(application.store.plants()).toHaveLength(1);
  });

  const malformed = { ...rejected(errors.malformedRequest), headers: { connection: 'close' } };

  it.each([
    ['two complete responses', ALIVE + ALIVE, [{ status: 200 }, { status: 200 }, malformed]],
    ['a complete response, as a chunk', ALIVE + AUTHORIZED + CHUNKED, [{ status: 200 }, malformed]],
    [
      'a response that waits for others',
      creation(1) + ALIVE,
      [{ status: 200 }, { status: 200 }, malformed],
    ],
    [
      'several such responses',
      creation(1) + creation(2) + ALIVE + ALIVE.replace('live', 'x'),
      [{ status: 200 }, { status: 200 }, { status: 200 }, { status: 404 }, malformed],
    ],
    ['a response in progress', creation(1), [{ status: 200, headers: { connection: 'close' } }]],
    [
      'responses in progress',
      creation(1) + creation(2),
      [{ status: 200 }, { status: 200, headers: { connection: 'close' } }],
    ],
    [
      'a response in progress, as a chunk',
      creation(1) + AUTHORIZED + CHUNKED,
      [{ status: 200, headers: { connection: 'close' } }],
    ],
    [
      'a response that waits for others, as a chunk',
      creation(1) + ALIVE + AUTHORIZED + CHUNKED,
      [{ status: 200 }, { status: 200 }, malformed],
    ],
  ])(
    'tells the client that invalid bytes end the connection, behind %s',
    async (_what, requests, responses) => {
      expect(await exchange(application.url, `${requests}garbage\r\n\r\n`)).toMatchObject(
        responses,
      );
    },
  );

  it('returns nothing more after the response to a request whose body becomes invalid later', async () => {
    const socket = connected();
    socket.write(`${POST}${CHUNKED}`);
    await once(socket, 'readable');
    socket.write('xyz\r\n');

    expect(await readResponses(socket)).toMatchObject([rejected(errors.missingCredentials)]);
  });

  it('64 requests in progress on a connection are processed', async () => {
    const last = ALIVE.replace('Host: x', 'Host: x\r\nConnection: close');

    expect(await exchange(application.url, ALIVE.repeat(63) + last)).toHaveLength(64);
  });

  it('65 create requests at once: 64 are stored and get their responses, and the connection ends', async () => {
    // More than one segment.
    const requests = Array.from({ length: 5000 }, (_, id) => creation(id));

    const responses = await exchange(application.url, requests.join(''));

    expect(responses.map(({ status }) => status)).toEqual(Array(64).fill(200));
    expect(responses.map(({ headers }) => headers.connection)).toEqual([
      ...Array<string>(63).fill('keep-alive'),
      'close',
    ]);
    expect(application.store.plants()).toHaveLength(64);
  });

  it('65 requests whose responses are written at once get 64 responses, and an error that ends the connection', async () => {
    const responses = await exchange(application.url, ALIVE.repeat(65) + creation(1));

    expect(responses.slice(0, 64).map(({ status }) => status)).toEqual(Array(64).fill(200));
    const headers = { connection: 'close', 'retry-after': '1' };
    expect(responses.slice(64)).toMatchObject([{ ...rejected(errors.unavailable), headers }]);
    expect(application.store.plants()).toEqual([]);
  });

  it.each([
    'CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n',
    'garbage\r\n\r\n',
    creation(100, 'Upgrade: h2c'),
  ])('64 create requests get their responses if %j follows a 65th one', async (rest) => {
    const requests = Array.from({ length: 65 }, (_, id) => creation(id)).join('');

    expect(await exchange(application.url, requests + rest)).toHaveLength(64);
  });

  it.each([
    ['a create request', creation(1), [{ status: 200 }]],
    ['several requests', creation(1) + ALIVE, [{ status: 200 }, { status: 200 }]],
    ['no request', '', []],
    ['an incomplete request', creation(1).slice(0, -1), [malformed]],
    [
      'a request and an incomplete one',
      ALIVE + creation(1).slice(0, -1),
      [{ status: 200 }, malformed],
    ],
  ])('responds to a client that closes its side behind %s', async (_what, requests, responses) => {
    const socket = connected();
    socket.end(requests);

    expect(await readResponses(socket)).toMatchObject(responses);
  });

  it.each([
    ['abc~!', 'abc~!'],
    ['x'.repeat(128), 'x'.repeat(128)],
    ['x'.repeat(129), expect.stringMatching(UUID)],
    ['a b', expect.stringMatching(UUID)],
    ['\x9b31m', expect.stringMatching(UUID)],
    ['é', expect.stringMatching(UUID)],
    ['', expect.stringMatching(UUID)],
  ] as [string, string][])('returns for the X-Request-Id %j the id %j', async (sent, returned) => {
    const headers = `Host: x\r\nConnection: close\r\nX-Request-Id: ${sent}`;
    const request = ALIVE.replace('Host: x', headers);
    for (const each of [request, request.replace('/health/live', '/%zz')]) {
      const [response] = await exchange(application.url, Buffer.from(each, 'latin1'));

      expect(response?.headers['x-request-id']).toEqual(returned);
    }
  });

  it('does not log a client disconnect during the body as a server error', async () => {
    const socket = connected();
    socket.write(creation(14).slice(0, -5));
    const [request] = (await once(application.app.getHttpServer(), 'request')) as [IncomingMessage];
    socket.resetAndDestroy();
    await once(request, 'error');

    const metric = `plant_store_errors_total{error="${errorNumbers.internal}"}`;
    expect(await readMetric(application.url, metric)).toBe(0);
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
