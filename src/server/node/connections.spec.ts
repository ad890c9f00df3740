import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { answerClientError, answerConnect } from './client-errors';
import { Connections } from './connections';
import { continueOnceRead } from './continue';

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
const LAST = 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';

/** What this folder needs of Node.js, each on a plain server. */
describe('connections of a Node.js server', () => {
  let server: Server;
  let connections: Connections;
  let handle: Handler;
  let admitted: number;
  let sockets: Socket[];
  beforeEach(async () => {
    admitted = 0;
    sockets = [];
    handle = (request, response) => {
      request.resume();
      response.end('answer');
    };
    server = createServer({ maxHeaderSize: 1024 });
    connections = new Connections(server);
    const receive: Handler = (request, response) => {
      if (!connections.admit(request, response)) return;
      admitted++;
      handle(request, response);
    };
    server.on('request', receive).on('checkContinue', (request, response) => {
      receive(request, response);
      continueOnceRead(request, response);
    });
    server.on('clientError', (error, socket) => {
      answerClientError(error, socket as Socket, connections);
    });
    answerConnect(server, connections);
    await once(server.listen(0, '127.0.0.1'), 'listening');
  });
  afterEach(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });

  function open(): Socket {
    const { port } = server.address() as AddressInfo;
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    socket.on('error', () => undefined);
    sockets.push(socket);
    return socket;
  }

  /** All that a server sends until it ends its side. */
  async function received(socket: Socket): Promise<string> {
    let text = '';
    socket.on('data', (chunk) => (text += String(chunk)));
    await once(socket, 'end');
    return text;
  }

  async function exchange(text: string): Promise<string> {
    const socket = open();
    socket.write(text);
    return received(socket);
  }

  /** The status lines of answers. */
  const statuses = (text: string) => text.match(/HTTP\/1\.1 \d+/g)?.map((line) => line.slice(9));

  it('processes nothing behind an answer that was told to close', async () => {
    handle = (_request, response) => {
      response.setHeader('Connection', 'close').end();
    };

    expect(statuses(await exchange(GET + GET))).toEqual(['200']);
    expect(admitted).toBe(1);
  });

  it('reads on after the last answer, so that a client that still sends can read it', async () => {
    handle = (_request, response) => {
      response.shouldKeepAlive = false;
      response.end('answer');
    };
    const [accepted] = (await Promise.all([
      once(server, 'connection').then(([socket]: Socket[]) => socket),
      exchange('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n\r\n'),
    ])) as [Socket, string];

    expect(accepted.destroyed).toBe(false);
    sockets[0]?.write('x'.repeat(100_000));
    sockets[0]?.end();
    await once(accepted, 'close');
    expect(accepted.bytesRead).toBeGreaterThan(100_000);
  });

  it('gives the parser nothing behind the end of a connection', async () => {
    handle = (request, response) => {
      setImmediate(() => {
        connections.end(request.socket);
        sockets[0]?.write(GET);
      });
      void setTimeout(20).then(() => response.end('answer'));
    };

    expect(statuses(await exchange(GET))).toEqual(['200']);
    expect(admitted).toBe(1);
  });

  it('answers a client that has ended its side, and closes', async () => {
    handle = (_request, response) => void setTimeout(20).then(() => response.end('answer'));
    const socket = open();
    socket.end(GET);

    expect(await received(socket)).toMatch(/connection: close/i);
  });

  it.each([
    ['a body', 'Content-Length: 9\r\n\r\nx'],
    [
      'a trailer',
      'Connection: Upgrade\r\nUpgrade: h2c\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y',
    ],
  ])('answers 400 to a client that ends its side in the middle of %s', async (_what, rest) => {
    handle = (request) => request.resume();
    const socket = open();
    socket.end(`POST / HTTP/1.1\r\nHost: x\r\n${rest}`);

    expect(statuses(await received(socket))).toEqual(['400']);
  });

  it('answers a request that was on its way when draining began', async () => {
    const socket = open();
    socket.write(GET);
    const answers = received(socket);
    await once(socket, 'data');

    const drained = connections.drain(5000);
    socket.write(GET);

    expect(await answers).toMatch(/answer.*connection: close.*answer$/is);
    socket.end();
    await drained;
  });

  it('closes every response when a connection breaks behind a CONNECT', async () => {
    let closed = 0;
    let accepted = 0;
    handle = (_request, response) => {
      response.once('close', () => closed++);
      if (++accepted === 3) setImmediate(() => sockets[0]?.resetAndDestroy());
    };
    open().write(`${GET}${GET}${GET}CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n`);

    while (closed < 3) await setTimeout(5);
    expect(accepted).toBe(3);
  });

  it('destroys a connection whose client does not read', async () => {
    server.setTimeout(50);
    handle = (_request, response) => response.end('x'.repeat(2 ** 24));
    open().pause().write(GET);
    const [peer] = (await once(server, 'connection')) as [Socket];

    await once(peer, 'close');

    expect(peer.destroyed).toBe(true);
  });

  it('survives a client that resets after CONNECT', async () => {
    const socket = open();
    socket.write('CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n');
    const [peer] = (await once(server, 'connection')) as [Socket];
    await once(server, 'connect');
    const left = new Promise((resolve) => peer.once('close', resolve));
    socket.resetAndDestroy();
    await left;

    expect(statuses(await exchange(LAST))).toEqual(['200']);
  });

  it('asks for a body once it is read, and not after an answer', async () => {
    const expecting =
      'POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n';
    handle = (request, response) => {
      setImmediate(() => request.resume().once('end', () => response.end('answer')));
    };
    const socket = open();
    socket.write(expecting);
    const answers = received(socket);
    await once(socket, 'data');
    socket.write('x');
    expect(statuses(await answers)).toEqual(['100', '200']);

    handle = (_request, response) => setImmediate(() => response.end('answer'));
    expect(statuses(await exchange(expecting))).toEqual(['200']);
  });
});
