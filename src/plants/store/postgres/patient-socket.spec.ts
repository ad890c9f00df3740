import dns from 'node:dns';
import { createServer, type AddressInfo, type Server, Socket } from 'node:net';
import { once } from 'node:events';
import { Client } from 'pg';
import { PatientSocket } from './patient-socket';
import { toFailure } from './postgres.errors';

const CONNECT_TIMEOUT_MS = 2000;

describe('PatientSocket', () => {
  let server: Server;
  let port: number;
  beforeEach(async () => {
    server = createServer();
    await once(server.listen(0, '127.0.0.1'), 'listening');
    ({ port } = server.address() as AddressInfo);
  });
  afterEach(() => {
    server.close();
    jest.restoreAllMocks();
  });

  /** Makes a host name have these addresses. */
  function resolveTo(...addresses: string[]): void {
    const found = addresses.map((address) => ({ address, family: 4 }));
    jest.spyOn(dns, 'lookup').mockImplementation(((
      _host: string,
      _options: object,
      callback: (...result: unknown[]) => void,
    ) => {
      callback(null, found);
    }) as typeof dns.lookup);
  }

  async function failToConnect(): Promise<unknown> {
    const stream = (): Socket => new PatientSocket(CONNECT_TIMEOUT_MS);
    const client = new Client({ host: 'db.example.org', port, stream });
    return client.connect().catch((error: unknown) => error);
  }

  it.each([
    [['127.0.0.1'], 1800],
    [['127.0.0.2', '127.0.0.1'], 900],
    [['127.0.0.2', '127.0.0.3', '127.0.0.1'], 600],
  ])('connects to one of the addresses %j, each of which has %i ms', async (addresses, timeout) => {
    resolveTo(...addresses);
    const connect = jest.spyOn(Socket.prototype, 'connect');
    const socket = new PatientSocket(CONNECT_TIMEOUT_MS);

    socket.connect(port, 'db.example.org');
    await once(socket, 'connect');

    expect(socket.remoteAddress).toBe('127.0.0.1');
    expect(connect.mock.calls).toMatchObject([[{ autoSelectFamilyAttemptTimeout: timeout }]]);
    socket.destroy();
  });

  it('is used by the driver, and each address is reported with the reason why it failed', async () => {
    server.close();
    resolveTo('127.0.0.2', '127.0.0.3');

    const failure = toFailure('PostgreSQL', await failToConnect());

    expect(failure.message).toBe(
      `PostgreSQL: connect ECONNREFUSED 127.0.0.2:${port}; connect ECONNREFUSED 127.0.0.3:${port}.`,
    );
  });

  it('reports a host name that has no address', async () => {
    jest.spyOn(dns, 'lookup').mockImplementation(((
      _host: string,
      _options: object,
      callback: (error: Error) => void,
    ) => {
      callback(new Error('getaddrinfo ENOTFOUND db.example.org'));
    }) as typeof dns.lookup);

    expect(String(await failToConnect())).toContain('ENOTFOUND');
  });
});
