import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { listen } from '../../../test/support/listen';
import { Connections } from './connections';

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

describe('the connections of a server', () => {
  let server: Server;
  let connections: Connections;
  let handle: Handler;
  let sockets: Socket[];
  let url: URL;
  beforeEach(async () => {
    sockets = [];
    server = createServer();
    connections = new Connections(server);
    server.on('request', (request, response) => {
      connections.take(request, response, () => {
        handle(request, response);
      });
    });
    server.on('clientError', (error, socket) => {
      connections.fail(error, socket as Socket);
    });
    url = await listen(server);
  });
  afterEach(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });

  function open(): Socket {
    const socket = connect(Number(url.port), url.hostname);
    socket.on('error', () => undefined);
    sockets.push(socket);
    return socket;
  }

  /** All that the server sends until it ends its side. */
  async function received(socket: Socket): Promise<string> {
    let text = '';
    socket.on('data', (chunk) => (text += String(chunk)));
    await once(socket, 'end');
    return text;
  }

  it('read no further while requests pile up', async () => {
    handle = () => undefined;
    const socket = open();
    const [peer] = (await Promise.all([
      once(server, 'connection').then(([each]: Socket[]) => each),
      new Promise((resolve) => socket.write(GET.repeat(2), resolve)),
      once(server, 'request'),
    ])) as [Socket, ...unknown[]];

    expect(peer.isPaused()).toBe(true);
    socket.write(GET.repeat(500_000));
    await once(open().end(), 'close');
    expect(peer.bytesRead).toBeLessThan(2 ** 20);
  });

  it('answer a request that was on its way when draining began, and close', async () => {
    handle = (_request, response) => response.end('answer');
    const socket = open();
    socket.write(GET);
    const answers = received(socket);
    await once(socket, 'data');

    const drained = connections.drain(60_000);
    socket.write(GET);

    expect(await answers).toMatch(/answer.*connection: close.*answer$/is);
    await drained;
  });

  it('are destroyed when their client does not read', async () => {
    server.setTimeout(50);
    handle = (_request, response) => response.end('x'.repeat(2 ** 24));
    open().pause().write(GET);
    const [peer] = (await once(server, 'connection')) as [Socket];

    await once(peer, 'close');

    expect(peer.destroyed).toBe(true);
  });
});
