import { readFileSync } from 'node:fs';
import { Logger } from '@nestjs/common';
import type { ClientConfig } from 'pg';
import { PostgresPlantsRepository } from '../../src/plants/persistence/postgres/postgres-plants.repository';
import { CERTIFICATE, PostgresServer } from '../support/postgres';

jest.setTimeout(30_000);

describe('PostgresPlantsRepository, over TLS', () => {
  const errors: string[] = [];
  let server: PostgresServer;
  beforeAll(async () => {
    Logger.overrideLogger({
      error: (line: string) => errors.push(line),
      log: () => undefined,
      warn: () => undefined,
    });
    server = await PostgresServer.make({ fsync: 'off', ssl_ca_file: 'server.crt' });
    server.offerTls();
    await server.start();
    await server.admit('hostnossl all clerk 127.0.0.1/32 reject');
    await server.admit('hostssl all localhost 127.0.0.1/32 cert');
    for (const role of ['clerk', 'localhost']) {
      await server.execute(`CREATE ROLE ${role} LOGIN IN ROLE pg_write_all_data, pg_read_all_data`);
    }
    await (await PostgresPlantsRepository.open(server.url())).onApplicationShutdown();
  });
  beforeEach(() => {
    errors.length = 0;
  });
  afterAll(async () => {
    await server.remove();
    Logger.overrideLogger(['error']);
  });

  /** Inserts a plant and says whether that succeeded, and whether the session was encrypted. */
  async function insertBy(where: string | ClientConfig) {
    const repository = await PostgresPlantsRepository.open(where);
    const isInserted = await repository
      .insert({ id: BigInt(Date.now()), name: 'Fern' })
      .catch(() => false);
    const sessions = await server.execute(
      `SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
       WHERE application_name = 'plant-store'`,
    );
    await repository.onApplicationShutdown();
    return { isInserted, isEncrypted: sessions.some(({ ssl }) => ssl === true) };
  }

  const encrypted = { isInserted: true, isEncrypted: true };
  const connect = (host: string, parameters: string) =>
    insertBy(`postgres://clerk@${host}:${server.port}/postgres?${parameters}`);

  it.each([
    ['require', '127.0.0.1', 'sslmode=require'],
    ['ssl=true', 'localhost', `ssl=true&sslrootcert=${CERTIFICATE}`],
    ['verify-ca', '127.0.0.1', `sslmode=verify-ca&sslrootcert=${CERTIFICATE}`],
    ['verify-full', 'localhost', `sslmode=verify-full&sslrootcert=${CERTIFICATE}`],
  ])('encrypts with sslmode %s', async (_mode, host, parameters) => {
    expect(await connect(host, parameters)).toEqual(encrypted);
  });

  it.each([
    [
      'the certificate of another host',
      '127.0.0.1',
      `sslmode=verify-full&sslrootcert=${CERTIFICATE}`,
      /does not match certificate's altnames/,
    ],
    [
      'a certificate of an unknown authority',
      'localhost',
      'sslmode=verify-full',
      /self-signed certificate/,
    ],
    [
      'plain text where the server refuses it',
      '127.0.0.1',
      'sslmode=disable',
      /no encryption \(28000\)\. Check the user and sslmode, and the server's pg_hba.conf\./,
    ],
  ])('does not use %s, and says why', async (_what, host, parameters, fault) => {
    expect(await connect(host, parameters)).toEqual({ isInserted: false, isEncrypted: false });
    expect(errors.join()).toMatch(fault);
  });

  describe('with an ssl object', () => {
    const certificate = readFileSync(CERTIFICATE, 'utf8');
    const key = readFileSync(CERTIFICATE.replace(/crt$/, 'key'), 'utf8');

    const connectAs = (user: string, ssl: ClientConfig['ssl']) =>
      insertBy({ host: 'localhost', port: server.port, user, database: 'postgres', ssl });

    it('encrypts, and verifies the server', async () => {
      expect(await connectAs('clerk', { ca: certificate })).toEqual(encrypted);
      expect(await connectAs('clerk', {})).toMatchObject({ isInserted: false });
      expect(errors.join()).toMatch(/self-signed certificate/);
    });

    it('sends the client certificate', async () => {
      expect((await connectAs('localhost', { ca: certificate })).isInserted).toBe(false);
      expect(errors.join()).toMatch(/requires a valid client certificate/);
      const ssl = { ca: certificate, cert: certificate, key };
      expect(await connectAs('localhost', ssl)).toEqual(encrypted);
    });

    it('is verified when a URL beside it asks for no verification', async () => {
      const connectionString = `postgres://clerk@127.0.0.1:${server.port}/postgres?sslmode=require`;

      expect(await insertBy({ connectionString })).toMatchObject({ isInserted: true });
      expect(await insertBy({ connectionString, ssl: undefined })).toEqual(encrypted);
      const verified = await insertBy({ connectionString, ssl: { ca: certificate } });
      expect(verified.isInserted).toBe(false);
    });
  });
});
