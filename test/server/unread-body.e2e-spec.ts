/** Sends bodies that the service does not read, on real connections. */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import type { ErrorBody } from '../../src/plants';
import { TestApplication, TOKEN } from '../support/application';
import { errorBodies } from '../support/error-bodies';
import { exchange, openConnection, readResponses } from '../support/wire';

/** Tests that unwanted bodies are discarded, and when a client is asked to send one. */

const AUTHORIZED = `Authorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\n`;
const FERN = '{"id":1,"name":"Fern"}';
const SIZE = 200_000;
const LENGTH = `Content-Length: ${SIZE}\r\n`;
const CHUNKED = 'Transfer-Encoding: chunked\r\n';
const CLOSE = 'Connection: close\r\n';
const HOST = 'Host: x\r\n';

describe('an unread body', () => {
  const application = TestApplication.use();
  afterEach(() => {
    application.store.removePlants();
  });

  /** Sends a request in two parts. The second one is sent only after the response to the first one has arrived. */
  async function sendInParts(first: string, second: Buffer) {
    const socket = openConnection(application.url);
    const received = readResponses(socket);
    socket.write(first);
    const [message] = (await once(application.app.getHttpServer(), 'request')) as [IncomingMessage];
    await once(socket, 'data');
    await setImmediate();
    socket.write(second);
    const responses = await received;
    return { responses, isBodyComplete: message.complete };
  }

  // prettier-ignore
  it.each<[string, string, ErrorBody]>([
    ['too many bytes', `POST /plants HTTP/1.1\r\n${HOST}${AUTHORIZED}${LENGTH}`, errorBodies.tooLarge],
    ['no token', `POST /plants HTTP/1.1\r\n${HOST}${CLOSE}${LENGTH}`, errorBodies.missingCredentials],
    ['no token, in HTTP/1.0', `POST /plants HTTP/1.0\r\n${LENGTH}`, errorBodies.missingCredentials],
    ['no Host', `POST /plants HTTP/1.1\r\n${LENGTH}`, errorBodies.missingHost],
    ['an unknown path', `POST /nope HTTP/1.1\r\n${HOST}${CLOSE}${LENGTH}`, errorBodies.notFound],
    ['another method', `PUT /plants HTTP/1.1\r\n${HOST}${CLOSE}${LENGTH}`, errorBodies.methodNotAllowed],
    ['a malformed target', `POST /%zz HTTP/1.1\r\n${HOST}${CLOSE}${LENGTH}`, errorBodies.malformedTarget],
  ])('is taken off the socket before the connection closes: %s', async (_why, head, body) => {
    const { responses, isBodyComplete } = await sendInParts(
      `${head}\r\n{`,
      Buffer.alloc(SIZE - 1, 'x'),
    );

    const status = Math.floor(body.error / 100);
    expect(responses).toMatchObject([{ status, headers: { connection: 'close' }, body }]);
    expect(isBodyComplete).toBe(true);
  });

  it('is taken off the socket if it turns out to be too long', async () => {
    const chunk = `${(2 ** 16 + 1).toString(16)}\r\n${'x'.repeat(2 ** 16 + 1)}\r\n`;

    const head = `POST /plants HTTP/1.1\r\n${HOST}${AUTHORIZED}${CHUNKED}\r\n`;
    const { responses, isBodyComplete } = await sendInParts(
      head + chunk,
      Buffer.from(`${chunk}0\r\n\r\n`),
    );

    const headers = { connection: 'close' };
    expect(responses).toMatchObject([{ status: 400, headers, body: errorBodies.tooLarge }]);
    expect(isBodyComplete).toBe(true);
  });

  it('leaves the connection open for further requests after a missing token', async () => {
    const rejected = `POST /plants HTTP/1.1\r\n${HOST}${LENGTH}\r\n{`;
    const alive = `GET /health/live HTTP/1.1\r\n${HOST}${CLOSE}\r\n`;

    const rest = Buffer.concat([Buffer.alloc(SIZE - 1, 'x'), Buffer.from(alive)]);
    const { responses } = await sendInParts(rejected, rest);

    expect(responses).toMatchObject([{ status: 401 }, { status: 200 }]);
  });

  it('that never ends is not read for ever', async () => {
    const socket = openConnection(application.url);
    // The connection is reset in the end, because the client goes on.
    const closed = new Promise((resolve) => socket.on('error', resolve).on('close', resolve));
    socket.resume();
    socket.write(`POST /plants HTTP/1.1\r\n${HOST}${AUTHORIZED}${CHUNKED}\r\n`);
    const chunk = `10000\r\n${'x'.repeat(2 ** 16)}\r\n`;
    const send = (): void => {
      if (socket.writable) socket.write(chunk, send);
    };
    send();

    await closed;

    expect(application.store.plants()).toEqual([]);
  });
});

describe('Expect: 100-continue', () => {
  const application = TestApplication.use();
  const EXPECT = 'Expect: 100-continue\r\n';
  const create = (...headers: string[]): string =>
    `POST /plants HTTP/1.1\r\n${HOST}${EXPECT}${headers.join('')}\r\n`;

  async function readFirst(socket: Socket): Promise<string> {
    const [data] = (await once(socket, 'data')) as [Buffer];
    return data.toString();
  }

  it('is met when the body begins to be read', async () => {
    const socket = openConnection(application.url);
    const received = readResponses(socket);
    socket.write(create(AUTHORIZED, CLOSE, `Content-Length: ${FERN.length}\r\n`));

    expect(await readFirst(socket)).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    socket.write(FERN);
    const responses = await received;
    expect(responses).toMatchObject([{ status: 100 }, { status: 200, body: { name: 'Fern' } }]);
  });

  // prettier-ignore
  it.each<[string, string, ErrorBody]>([
    ['no token', create(LENGTH), errorBodies.missingCredentials],
    ['a token that is unknown', create('Authorization: Bearer x\r\n', LENGTH), errorBodies.invalidToken],
    ['too many bytes', create(AUTHORIZED, LENGTH), errorBodies.tooLarge],
    ['an unknown path', create(LENGTH).replace('/plants', '/nope'), errorBodies.notFound],
    ['another method', create(LENGTH).replace('POST', 'PUT'), errorBodies.methodNotAllowed],
    ['a malformed target', create(LENGTH).replace('/plants', '/%zz'), errorBodies.malformedTarget],
  ])('is not met, and the connection closes, with %s', async (_why, request, body) => {
    const headers = { connection: 'close' };

    expect(await exchange(application.url, request)).toMatchObject([{ headers, body }]);
  });

  it('is ignored in HTTP/1.0', async () => {
    const request = create(AUTHORIZED, `Content-Length: ${FERN.length}\r\n`).replace('1.1', '1.0');

    const responses = await exchange(application.url, request.replace('"id":1', '"id":2') + FERN);

    expect(responses.map(({ status }) => status)).not.toContain(100);
  });
});
