import { once } from 'node:events';
import { connect } from 'node:net';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ErrorBody } from '../../src/plants';
import { TestApplication, TOKEN } from '../support/application';
import { errorBodies } from '../support/error-bodies';
import { readMetric } from '../support/metrics';
import { until } from '../support/until';
import { exchange, open, readAnswers } from '../support/wire';

/** A good creation as it goes over the wire. */
function creation(id: number, fields: string[] = []): string {
  const body = `{"id":${id},"name":"Fern"}`;
  return [
    'POST /plants HTTP/1.1',
    'Host: localhost',
    `Authorization: Bearer ${TOKEN}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    ...fields,
    '',
    body,
  ].join('\r\n');
}

/** What a good creation is answered, {@link alive} what the liveness check is, and a refusal. */
const stored = { status: 200, body: { name: 'Fern' } };
const alive = { status: 200, body: { status: 'ok' } };
/** A request that leaves its connection open. */
const ALIVE = 'GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n';
const refused = (status: number, body: ErrorBody) => ({ status, body });

describe('HTTP on the wire', () => {
  let application: TestApplication;
  let url: URL;
  beforeAll(async () => {
    application = await TestApplication.start({ HEADERS_TIMEOUT: '500ms', REQUEST_TIMEOUT: '1s' });
    url = await application.listen();
  });
  afterAll(() => application.stop());
  const plantIds = (): number[] => application.store.plants().map(({ id }) => Number(id));

  it.each<[string, string | Buffer, number, ErrorBody]>([
    ['garbage', 'garbage\r\n\r\n', 400, errorBodies.malformedRequest],
    ['a TLS handshake', Buffer.from('160301020001000', 'hex'), 400, errorBodies.malformedRequest],
    ['another protocol', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, errorBodies.malformedRequest],
    [
      'a header without a colon',
      'GET / HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n',
      400,
      errorBodies.malformedRequest,
    ],
    [
      'two lengths',
      'POST /plants HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}',
      400,
      errorBodies.malformedRequest,
    ],
    [
      'a length and a transfer coding',
      'POST /plants HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      400,
      errorBodies.malformedRequest,
    ],
    [
      'a broken chunk',
      `POST /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n`,
      400,
      errorBodies.malformedRequest,
    ],
    ['a request without Host', 'GET / HTTP/1.1\r\n\r\n', 400, errorBodies.missingHost],
    [
      'two Host headers',
      'GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n',
      400,
      errorBodies.missingHost,
    ],
    ...[
      'a b',
      'a/b',
      'user@a',
      'a:port',
      'a, b',
      '[::1',
      '[zz]',
      '[1,2]',
      '[::g]',
      '[::1%25x]',
      'a%2',
      '\u00e4',
    ].map((host): [string, string, number, ErrorBody] => [
      `the Host ${host}`,
      `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
      400,
      errorBodies.malformedHost,
    ]),
    ['a request line without version', 'GET /\r\n\r\n', 400, errorBodies.missingVersion],
    [
      'a path with a malformed escape',
      'GET /%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
      400,
      errorBodies.malformedTarget,
    ],
    [
      'a header section of 20 KiB',
      `GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
      431,
      errorBodies.headersTooLarge,
    ],
    ...['200-ok', '100-continue, 200-ok'].map(
      (expectation): [string, string, number, ErrorBody] => [
        `the expectation ${expectation}`,
        `POST /plants HTTP/1.1\r\nHost: x\r\nExpect: ${expectation}\r\nContent-Length: 0\r\n\r\n`,
        417,
        errorBodies.expectationFailed,
      ],
    ),
    ['a method nobody knows', 'BREW / HTTP/1.1\r\nHost: x\r\n\r\n', 501, errorBodies.unknownMethod],
    ['CONNECT', 'CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n', 501, errorBodies.unknownMethod],
    [
      'a transfer coding nobody knows',
      'POST /plants HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
      501,
      errorBodies.unknownCoding,
    ],
    [
      'a last transfer coding other than chunked',
      'POST /plants HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n',
      400,
      errorBodies.lastCoding,
    ],
    [
      'a transfer coding in HTTP/1.0, and a malformed target',
      'GET /%zz HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      400,
      errorBodies.codingOfOldVersion,
    ],
    [
      'a transfer coding in HTTP/1.0',
      'POST /plants HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      400,
      errorBodies.codingOfOldVersion,
    ],
  ])('answers %s with the Error body', async (_what, request, status, body) => {
    const answers = await exchange(url, request);

    expect(answers).toEqual([{ status, body, headers: expect.anything() as unknown }]);
    expect(answers[0]?.headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      connection: 'close',
      date: expect.stringMatching(/ GMT$/) as string,
    });
  });

  it.each(['x', 'localhost:3000', '127.0.0.1', '[::1]:80', '', 'a_b.example', 'x%20y:'])(
    'takes the Host %j',
    async (host) => {
      const request = `GET /health/live HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;

      expect(await exchange(url, request)).toMatchObject([{ status: 200 }]);
    },
  );

  it('takes HTTP/1.0 without Host', async () => {
    expect(await exchange(url, 'GET /health/live HTTP/1.0\r\n\r\n')).toMatchObject([
      { status: 200 },
    ]);
  });

  it.each([
    ['the header section', 'POST /plants HTTP/1.1\r\nHost: x\r\n'],
    ['the body', creation(1).slice(0, -5)],
    ['anything', ''],
  ])('answers 408 to a client that does not send %s in time', async (_what, beginning) => {
    const answers = await exchange(url, beginning);

    expect(answers).toMatchObject([{ status: 408, body: errorBodies.requestTimeout }]);
  });

  it('answers a good request before the garbage behind it', async () => {
    const answers = await exchange(url, `${creation(2)}garbage\r\n\r\n`);

    expect(answers).toMatchObject([
      { status: 200, body: { name: 'Fern' } },
      { status: 400, body: errorBodies.malformedRequest },
    ]);
  });

  it('answers several good requests before the garbage behind them', async () => {
    const answers = await exchange(url, `${creation(11)}${creation(12)}garbage\r\n\r\n`);

    expect(answers).toMatchObject([stored, stored, refused(400, errorBodies.malformedRequest)]);
  });

  it('answers a good request before the broken body behind it', async () => {
    const broken = `POST /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n`;

    const answers = await exchange(url, creation(13) + broken);

    expect(answers).toMatchObject([stored, refused(400, errorBodies.malformedRequest)]);
  });

  it('answers a good request before the CONNECT behind it', async () => {
    const answers = await exchange(
      url,
      `${creation(17)}CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n`,
    );

    expect(answers).toMatchObject([stored, refused(501, errorBodies.unknownMethod)]);
  });

  it.each([
    [
      'an upgrade',
      'GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n',
      alive,
    ],
    [
      'a malformed target',
      'GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n',
      refused(400, errorBodies.malformedTarget),
    ],
    [
      'an unknown expectation',
      'POST /plants HTTP/1.1\r\nHost: x\r\nExpect: x\r\nContent-Length: 0\r\n\r\n',
      refused(417, errorBodies.expectationFailed),
    ],
    [
      'a body that is too long',
      `POST /plants HTTP/1.1\r\nHost: x\r\nContent-Length: ${2 ** 21}\r\n\r\n${'x'.repeat(2 ** 21)}`,
      refused(400, errorBodies.tooLarge),
    ],
    [
      'an answer before the body expected',
      'GET /health/live HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n',
      alive,
    ],
    [
      'keep-alive and close in HTTP/1.0',
      'GET /health/live HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n',
      alive,
    ],
  ])('takes nothing behind %s, in one segment or later', async (_what, end, answer) => {
    for (const later of [false, true]) {
      const socket = open(url);
      socket.on('error', () => undefined);
      socket.write(later ? end : end + creation(30));
      if (later) setTimeout(() => socket.write(creation(30)), 150);
      expect(await readAnswers(socket)).toMatchObject([answer]);
    }
    expect(plantIds()).not.toContain(30);
  });

  it('takes the body of a request behind an upgrade for no request', async () => {
    const body = creation(31);
    const socket = open(url);
    socket.setNoDelay();
    socket.write(
      `GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\nPOST /nope HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n`,
    );
    setTimeout(() => socket.write(body), 50);

    expect(await readAnswers(socket)).toMatchObject([{ status: 200 }]);
    expect(plantIds()).not.toContain(31);
  });

  it('gives one answer to a request that breaks when it has been answered', async () => {
    const answers = await exchange(
      url,
      'PUT /url HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
    );

    expect(answers).toMatchObject([refused(404, errorBodies.notFound)]);
  });

  it('answers a client that has ended its side', async () => {
    for (let id = 40; id < 60; id++) {
      const socket = connect({ port: Number(url.port), host: url.hostname, allowHalfOpen: true });
      socket.end(creation(id));
      const answers = readAnswers(socket);

      expect(await answers).toMatchObject([{ status: 200, headers: { connection: 'close' } }]);
    }
  });

  it.each([
    ['http://u:p@x/plants', refused(400, errorBodies.malformedTarget)],
    ['http://[zz]/plants', refused(400, errorBodies.malformedTarget)],
    ['http:///plants', refused(400, errorBodies.malformedTarget)],
    ['https://x/plants', refused(400, errorBodies.malformedTarget)],
    ['ftp://x/plants', refused(400, errorBodies.malformedTarget)],
    ['/plants#f', refused(400, errorBodies.malformedTarget)],
    ['/plants?<>', refused(400, errorBodies.malformedTarget)],
    ['*', refused(400, errorBodies.malformedTarget)],
    ['*plants', refused(400, errorBodies.malformedTarget)],
    ['x:443', refused(400, errorBodies.malformedRequest)],
    ['/..%c0%af..', refused(400, errorBodies.malformedTarget)],
    // RFC 9110 section 4.2.3: an empty path is that of the root.
    ['http://x?q', refused(404, errorBodies.notFound)],
    ['http://x?a/b', refused(404, errorBodies.notFound)],
    ['/?q', refused(404, errorBodies.notFound)],
    // RFC 3986 section 6.2.2.2: the same path.
    ['/pl%61nts', stored],
    ['/Plants', refused(404, errorBodies.notFound)],
    ['/plants/', refused(404, errorBodies.notFound)],
    ['//plants', refused(404, errorBodies.notFound)],
    ['/%2Fplants', refused(404, errorBodies.notFound)],
  ])('answers the target %s with %j', async (target, answer) => {
    const request = creation(60, ['Connection: close']).replace('/plants', target);

    expect(await exchange(url, request)).toMatchObject([answer]);
  });

  it.each(['', ',', '100-continue,', '100-CONTINUE, 100-continue'])(
    'takes the expectation %j',
    async (expectation) => {
      const request = creation(61, [`Expect: ${expectation}`, 'Connection: close']).replace(
        '/plants',
        '/plants?',
      );

      expect((await exchange(url, request)).at(-1)?.status).not.toBe(417);
    },
  );

  it('sees a second Host behind a thousand fields', async () => {
    const request = `GET / HTTP/1.1\r\nHost: a\r\n${'a:\r\n'.repeat(1100)}Host: b\r\n\r\n`;

    expect(await exchange(url, request)).toMatchObject([
      { status: 400, body: errorBodies.missingHost },
    ]);
  });

  it('takes nothing behind a request that ends its connection', async () => {
    const answers = await exchange(url, `GET / HTTP/1.1\r\nHost: a b\r\n\r\n${creation(18)}`);

    expect(answers).toMatchObject([refused(400, errorBodies.malformedHost)]);
    const again = await exchange(url, creation(18, ['Connection: close']));
    expect(again).toMatchObject([{ status: 200 }]);
  });

  it.each([
    [
      'too long',
      `POST /plants HTTP/1.1\r\nHost: x\r\nContent-Length: ${2 ** 24}\r\n\r\n`,
      refused(400, errorBodies.tooLarge),
    ],
    [
      'of a Host that is none',
      'POST /plants HTTP/1.1\r\nHost: a b\r\nContent-Length: 9999999\r\n\r\n',
      refused(400, errorBodies.malformedHost),
    ],
    [
      'not expected',
      'POST /plants HTTP/1.1\r\nHost: x\r\nExpect: x\r\nContent-Length: 9999999\r\n\r\n',
      refused(417, errorBodies.expectationFailed),
    ],
    [
      'behind a broken chunk',
      'POST /plants HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n',
      refused(400, errorBodies.malformedRequest),
    ],
  ])('lets a client that still sends a body %s read its answer', async (_what, head, answer) => {
    // More than the buffers on the way hold, from a client that reads when all of it is sent.
    const body = 'x'.repeat(2 ** 22);
    for (let times = 0; times < 5; times++) {
      const socket = open(url).pause();
      socket.on('error', () => undefined);
      await new Promise((resolve) => socket.write(head + body, resolve));
      const answers = socket.destroyed ? [] : readAnswers(socket);
      socket.resume();

      expect(await answers).toMatchObject([answer]);
    }
  });

  it('answers requests on one connection in their order', async () => {
    const answers = await exchange(
      url,
      creation(3) + creation(3) + creation(4, ['Connection: close']),
    );

    expect(answers).toMatchObject([
      { status: 200, body: { name: 'Fern' } },
      { status: 400, body: errorBodies.idTaken },
      { status: 200, body: { name: 'Fern' } },
    ]);
  });

  it('answers HEAD without a body', async () => {
    const answers = await exchange(
      url,
      'HEAD /plants HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    );

    expect(answers).toMatchObject([{ status: 405, headers: { allow: 'POST' }, body: null }]);
  });

  it.each([
    ['a malformed field', 'HEAD / HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n'],
    ['a second one behind a good request', `${ALIVE}HEAD / HTTP/1.1\r\nHost: x\r\n: x\r\n\r\n`],
    ['a malformed Host', 'HEAD / HTTP/1.1\r\nHost: a b\r\n\r\n'],
  ])('refuses HEAD without a body: %s', async (_what, request) => {
    const socket = open(url);
    let received = '';
    socket.on('data', (chunk) => (received += String(chunk)));
    socket.write(request);
    await once(socket, 'close');

    expect(received).toMatch(/HTTP\/1.1 400 (?:(?!\r\n\r\n).)*\r\n\r\n$/s);
  });

  it('answers OPTIONS * 404', async () => {
    const answers = await exchange(url, 'OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n');

    expect(answers).toMatchObject([refused(404, errorBodies.notFound)]);
  });

  it('refuses two media types', async () => {
    const request = creation(10, ['Content-Type: application/json', 'Connection: close']);

    expect(await exchange(url, request)).toMatchObject([
      { status: 400, body: errorBodies.mediaType },
    ]);
  });

  it('takes a target in absolute form', async () => {
    const request = creation(5, ['Connection: close']).replace('/plants', 'http://x/plants');

    expect(await exchange(url, request)).toMatchObject([{ status: 200 }]);
  });

  it('takes a body in chunks', async () => {
    const [head = '', body = ''] = creation(6, ['Connection: close']).split('\r\n\r\n');
    const chunked = head.replace(/Content-Length: \d+/, 'Transfer-Encoding: chunked');
    const chunks = body.replace(/./gs, '1\r\n$&\r\n');

    const answers = await exchange(url, `${chunked}\r\n\r\n${chunks}0\r\n\r\n`);

    expect(answers).toMatchObject([{ status: 200 }]);
  });

  it('takes nothing behind a close in a trailer, and says so in the answer', async () => {
    const [head = '', body = ''] = creation(62).split('\r\n\r\n');
    const chunked = head.replace(/Content-Length: \d+/, 'Transfer-Encoding: chunked');
    const first = `${chunked}\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\nConnection: close\r\n\r\n`;

    const answers = await exchange(url, first + creation(63));

    expect(answers).toMatchObject([{ ...stored, headers: { connection: 'close' } }]);
  });

  it('takes an expectation of 100-continue', async () => {
    const [head = '', body = ''] = creation(7, ['Expect: 100-continue', 'Connection: close']).split(
      '\r\n\r\n',
    );
    const socket = open(url);
    socket.write(`${head}\r\n\r\n`);
    await once(socket, 'readable');
    socket.write(body);

    const answers = await readAnswers(socket);

    expect(answers).toMatchObject([{ status: 100 }, { status: 200 }]);
  });

  it.each([
    ['has no path to go to', '/nothing', 10, refused(404, errorBodies.notFound)],
    ['is too long', '/plants', 2 ** 21, refused(400, errorBodies.tooLarge)],
  ])('does not ask for a body that %s', async (_what, path, length, answer) => {
    const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nExpect: 100-continue\r\nConnection: close\r\nContent-Length: ${length}\r\n\r\n`;

    expect(await exchange(url, head)).toMatchObject([answer]);
  });

  it('does not take a caller who hangs up amid a body for a failure of its own', async () => {
    const socket = open(url);
    socket.write(creation(14).slice(0, -5));
    const [request] = (await once(application.app.getHttpServer(), 'request')) as [IncomingMessage];
    socket.resetAndDestroy();
    await once(request, 'error');

    const metrics = await application.app.inject({
      url: '/metrics',
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    expect(metrics.body).toMatch(/^plant_store_errors_total\{error="50000"\} 0$/m);
  });

  const tunnel = 'CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n';
  it.each([
    ['FIN', ''],
    ['RST', ''],
    ['FIN', tunnel],
    ['RST', tunnel],
  ])(
    'closes the responses to a client that leaves by %s, behind all requests and %j',
    async (leaving, last) => {
      const server = application.app.getHttpServer();
      let unfinished = 0;
      const count = (_request: IncomingMessage, response: ServerResponse): void => {
        unfinished++;
        response.once('close', () => unfinished--);
      };
      server.prependListener('request', count);

      for (let times = 0; times < 50; times++) {
        const socket = open(url);
        await once(socket, 'connect');
        const before = [70, 71, 72].map((id) => creation(id + times * 3)).join('');
        socket.write(before + last);
        for (let turn = 0; turn < times % 5; turn++) await new Promise(setImmediate);
        if (leaving === 'FIN') socket.end();
        else socket.resetAndDestroy();
      }

      await until(() => unfinished === 0, 10_000);
      server.off('request', count);
      expect(unfinished).toBe(0);
    },
  );

  it('lives on when clients hang up after CONNECT', async () => {
    for (let times = 0; times < 50; times++) {
      const socket = open(url);
      await once(socket, 'connect');
      socket.write('CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n');
      await new Promise(setImmediate);
      socket.resetAndDestroy();
    }

    expect(await exchange(url, creation(16, ['Connection: close']))).toMatchObject([
      { status: 200 },
    ]);
  });

  it('closes the connection of a CONNECT, whether or not its client does', async () => {
    const before = await readMetric(url, 'http_open_connections');
    const socket = connect({
      port: Number(url.port),
      host: url.hostname,
      allowHalfOpen: true,
    }).resume();
    socket.write('CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n');
    await once(socket, 'end');

    await until(async () => (await readMetric(url, 'http_open_connections')) <= before);
    expect(socket.writable).toBe(true);
    socket.destroy();
  });

  it('lives on when clients hang up at any point', async () => {
    const request = creation(8);
    for (let sent = 0; sent < request.length; sent += 10) {
      const socket = open(url);
      await once(socket, 'connect');
      socket.write(request.slice(0, sent));
      socket.resetAndDestroy();
    }

    const answers = await exchange(url, creation(9, ['Connection: close']));

    expect(answers).toMatchObject([{ status: 200 }]);
  });
});
