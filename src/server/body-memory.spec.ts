import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { UnavailableError } from '../plants';
import { BodyMemory } from './body-memory';

const MIB = 1024 * 1024;

describe('BodyMemory', () => {
  let server: Server;
  let sockets: Socket[];
  let decide: (refusal: UnavailableError | undefined) => void;
  beforeEach(async () => {
    // In 214 MiB of memory, 4 MiB of bodies at a time.
    const bodies = new BodyMemory(8 * MIB, 214 * MIB);
    sockets = [];
    server = createServer((request, response) => {
      response.once('close', () => server.emit('released'));
      try {
        bodies.reserve(request, response);
        decide(undefined);
      } catch (error) {
        decide(error as UnavailableError);
      }
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterEach(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });

  /** Begins a request, and resolves to its refusal, if it is refused. */
  async function begin(framing: string): Promise<UnavailableError | undefined> {
    const decision = new Promise<UnavailableError | undefined>((resolve) => (decide = resolve));
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    sockets.push(socket);
    socket.write(`POST / HTTP/1.1\r\nHost: x\r\n${framing}\r\n\r\n`);
    return decision;
  }

  const length = (bytes: number) => begin(`Content-Length: ${bytes}`);

  it('admits bodies up to the bound together, and again once one is answered', async () => {
    for (let count = 0; count < 4; count++) expect(await length(MIB)).toBeUndefined();

    expect(await length(MIB)).toBeInstanceOf(UnavailableError);

    const released = once(server, 'released');
    sockets[0]?.destroy();
    await released;
    expect(await length(MIB)).toBeUndefined();
    expect(await length(MIB)).toBeInstanceOf(UnavailableError);
  });

  it('counts a body of unknown length as the largest, which is admitted alone', async () => {
    expect(await begin('Transfer-Encoding: chunked')).toBeUndefined();

    expect(await begin('Transfer-Encoding: chunked')).toBeInstanceOf(UnavailableError);
    expect(await length(MIB)).toBeInstanceOf(UnavailableError);
  });

  it('does not count small bodies, nor those that are refused for their length', async () => {
    expect(await length(8 * MIB)).toBeUndefined();

    expect(await length(1024)).toBeUndefined();
    expect(await length(8 * MIB + 1)).toBeUndefined();
  });
});
