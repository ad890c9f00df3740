import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { listen } from '../../../test/support/listen';
import { openConnection } from '../../../test/support/wire';
import { Connections } from './connections';
import { Rejections } from './rejections';

const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

describe('Connections', () => {
  let server: Server;
  let connections: Connections;
  let url: URL;
  beforeEach(async () => {
    server = createServer();
    connections = new Connections(server, new Rejections([], { countError: () => undefined }));
    url = await listen(server);
  });
  afterEach(() => {
    server.close().closeAllConnections();
  });

  function handle(respond: (response: ServerResponse) => void): void {
    server.on('request', (request, response) => {
      connections.handleInOrder(request, response, () => {
        respond(response);
      });
    });
  }

  it('stops reading while earlier requests of the connection are waiting', async () => {
    handle(() => undefined);
    const socket = openConnection(url).on('error', () => undefined);
    const [[peer]] = (await Promise.all<unknown[]>([
      once(server, 'connection'),
      new Promise((resolve) => socket.write(GET.repeat(2), resolve)),
      once(server, 'request'),
    ])) as [[Socket]];

    expect(peer.isPaused()).toBe(true);
    socket.write(GET.repeat(500_000));
    await once(openConnection(url).end(), 'close');
    expect(peer.bytesRead).toBeLessThan(2 ** 20);
  });

  it('responds to a request that arrives after draining began, and then closes the connection', async () => {
    handle((response) => response.end('answer'));
    const socket = openConnection(url);
    socket.write(GET);
    const received = text(socket);
    await once(socket, 'data');

    const drained = connections.drain(60_000);
    socket.write(GET);

    expect(await received).toMatch(/answer.*connection: close.*answer$/is);
    await drained;
  });

  it('destroys a connection when its client does not read the response', async () => {
    server.setTimeout(50);
    handle((response) => response.end('x'.repeat(2 ** 24)));
    const socket = openConnection(url).pause();
    socket.write(GET);
    const [peer] = (await once(server, 'connection')) as [Socket];

    await once(peer, 'close');

    expect(peer.destroyed).toBe(true);
    socket.destroy();
  });
});
