import { Logger } from '@nestjs/common';
import { PostgresPlantsRepository } from '../src/plants/persistence/postgres/postgres-plants.repository';
import { CERTIFICATE, PostgresServer } from './support/postgres';

jest.setTimeout(30_000);

describe('sslmode', () => {
  const errors: string[] = [];
  let server: PostgresServer;
  beforeAll(async () => {
    Logger.overrideLogger({
      error: (line: string) => errors.push(line),
      log: () => undefined,
      warn: () => undefined,
    });
    server = await PostgresServer.make();
    server.offerTls();
    await server.start();
    await server.admit('hostnossl all clerk 127.0.0.1/32 reject');
    await server.execute('CREATE ROLE clerk LOGIN IN ROLE pg_write_all_data, pg_read_all_data');
    await (await PostgresPlantsRepository.open(server.url())).onApplicationShutdown();
  });
  beforeEach(() => {
    errors.length = 0;
  });
  afterAll(async () => {
    await server.remove();
    Logger.overrideLogger(['error']);
  });

  /** Whether a plant was kept, the way a URL wants to connect, and how the session was protected. */
  async function connect(host: string, parameters: string) {
    const url = `postgres://clerk@${host}:${server.port}/postgres?${parameters}`;
    const repository = await PostgresPlantsRepository.open(url);
    const kept = await repository
      .insert({ id: BigInt(Date.now()), name: 'Fern' })
      .catch(() => false);
    const sessions = await server.execute(
      `SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
       WHERE application_name = 'plant-store'`,
    );
    await repository.onApplicationShutdown();
    return { kept, encrypted: sessions.some(({ ssl }) => ssl === true) };
  }

  it.each([
    ['require', '127.0.0.1', 'sslmode=require'],
    ['ssl=true', 'localhost', `ssl=true&sslrootcert=${CERTIFICATE}`],
    ['verify-ca', '127.0.0.1', `sslmode=verify-ca&sslrootcert=${CERTIFICATE}`],
    ['verify-full', 'localhost', `sslmode=verify-full&sslrootcert=${CERTIFICATE}`],
  ])('%s encrypts', async (_mode, host, parameters) => {
    expect(await connect(host, parameters)).toEqual({ kept: true, encrypted: true });
  });

  it('verify-full refuses the certificate of another host', async () => {
    const parameters = `sslmode=verify-full&sslrootcert=${CERTIFICATE}`;

    expect(await connect('127.0.0.1', parameters)).toEqual({ kept: false, encrypted: false });
    expect(errors.join()).toMatch(/does not match certificate's altnames/);
  });

  it('verify-full refuses a certificate that nobody vouches for', async () => {
    expect(await connect('localhost', 'sslmode=verify-full')).toMatchObject({ kept: false });
    expect(errors.join()).toMatch(/self-signed certificate/);
  });

  it('disable does not encrypt, and says which rule of the server turns it away', async () => {
    expect(await connect('127.0.0.1', 'sslmode=disable')).toMatchObject({ kept: false });
    expect(errors.join()).toMatch(
      /no encryption \(28000\)\. Check the user and sslmode in the URL, and the server's pg_hba.conf\./,
    );
  });
});
