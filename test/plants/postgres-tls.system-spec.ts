/** Connects to PostgreSQL, from npm, with each way to configure TLS. */
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ClientConfig } from 'pg';
import { generate } from 'selfsigned';
import { readDatabase } from '../../src/server/settings/database.settings';
import { openRepository } from '../../src/plants/store/stores';
import { useFolder } from '../support/folder';
import { useLog } from '../support/log';
import { CERTIFICATE, PostgresServer } from '../support/postgres';
import { until } from '../support/until';

describe('the PostgreSQL repository over TLS', () => {
  const folder = useFolder();
  const { lines, errors } = useLog();
  let server: PostgresServer;
  beforeAll(async () => {
    server = await PostgresServer.create({ fsync: 'off', ssl_ca_file: 'server.crt' });
    server.enableTls();
    await server.start();
    await server.addAccessRule('hostnossl all clerk 127.0.0.1/32 reject');
    await server.execute('CREATE ROLE clerk LOGIN IN ROLE pg_write_all_data, pg_read_all_data');
    await (await openRepository({ postgres: server.url() })).onApplicationShutdown();
  });
  afterAll(() => server.remove());

  it('warns once at startup when a remote URL does not set TLS options', async () => {
    for (const parameters of ['', '?sslmode=disable']) {
      const url = `postgres://db.invalid/plants${parameters}`;
      await (await openRepository({ postgres: url })).onApplicationShutdown();
    }

    const warnings = lines.filter((line) => line.startsWith('warn'));
    expect(warnings).toEqual([expect.stringContaining('sslmode=verify-full')]);
  });

  /** Inserts a plant. Returns whether that succeeded and whether the session was encrypted. */
  async function insertBy(where: string | ClientConfig) {
    const repository = await openRepository({ postgres: where });
    const insertion = await repository
      .insert({ id: BigInt(Date.now()), name: 'Fern' })
      .catch(() => undefined);
    const sessions = await server.execute(
      `SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
       WHERE application_name = 'plant-store'`,
    );
    await repository.onApplicationShutdown();
    return {
      isInserted: insertion === 'created',
      isEncrypted: sessions.some(({ ssl }) => ssl === true),
    };
  }

  const verified = `sslmode=verify-full&sslrootcert=${CERTIFICATE}`;
  const encrypted = { isInserted: true, isEncrypted: true };
  const connect = (host: string, parameters: string) =>
    insertBy(`postgres://clerk@${host}:${server.port}/postgres?${parameters}`);

  it.each([
    ['require', '127.0.0.1', 'sslmode=require'],
    ['verify-ca', '127.0.0.1', `sslmode=verify-ca&sslrootcert=${CERTIFICATE}`],
    ['verify-full', 'localhost', verified],
  ])('encrypts with sslmode %s', async (_mode, host, parameters) => {
    expect(await connect(host, parameters)).toEqual(encrypted);
  });

  it.each([
    ['the certificate of another host', '127.0.0.1', verified, /match certificate's altnames/],
    [
      'the certificate of another host, if channel_binding is require',
      '127.0.0.1',
      `sslmode=require&channel_binding=require&sslrootcert=${CERTIFICATE}`,
      /match certificate's altnames/,
    ],
    [
      'an untrusted certificate, if channel_binding is require',
      'localhost',
      'sslmode=require&channel_binding=require',
      /self-signed certificate/,
    ],
    ['an untrusted certificate', 'localhost', 'sslmode=verify-full', /self-signed certificate/],
    [
      'plain text when the server rejects it',
      '127.0.0.1',
      'sslmode=disable',
      /no encryption \(28000\)/,
    ],
  ])('rejects %s, and reports the reason', async (_what, host, parameters, fault) => {
    expect(await connect(host, parameters)).toEqual({ isInserted: false, isEncrypted: false });
    expect(errors().join()).toMatch(fault);
  });

  it('verifies the certificate with PGSSLMODE=require', async () => {
    jest.replaceProperty(process, 'env', { ...process.env, PGSSLMODE: 'require' });

    const url = `postgres://clerk@localhost:${server.port}/postgres`;
    await (await openRepository({ postgres: url })).onApplicationShutdown();
    jest.restoreAllMocks();

    expect(errors().join()).toMatch(/self-signed certificate/);
  });

  it('reads certificates, key and DATABASE_URL_FILE again after each failure', async () => {
    const inFolder = (name: string) => join(folder, name);
    const files = `sslrootcert=${inFolder('crt')}&sslcert=${inFolder('crt')}&sslkey=${inFolder('key')}`;
    const urlWith = (password: string) =>
      `postgres://keeper:${password}@localhost:${server.port}/postgres?sslmode=verify-full&channel_binding=require&${files}`;
    for (const name of ['crt', 'key']) cpSync(CERTIFICATE.replace('crt', name), inFolder(name));
    writeFileSync(inFolder('url'), urlWith('old'));
    await server.addAccessRule(
      'hostssl all keeper 127.0.0.1/32 scram-sha-256 clientcert=verify-ca',
    );
    await server.execute(`CREATE ROLE keeper LOGIN PASSWORD 'old' IN ROLE clerk`);
    const database = readDatabase({ DATABASE_URL_FILE: inFolder('url') });
    const repository = await openRepository(database);
    expect(await repository.insert({ id: 1n, name: 'Fern' })).toBe('created');

    const { cert, private: key } = await generate([{ name: 'commonName', value: 'localhost' }], {
      extensions: [
        { name: 'basicConstraints', cA: true },
        { name: 'subjectAltName', altNames: [{ type: 2, value: 'localhost' }] },
      ],
    });
    writeFileSync(join(server.data, 'server.crt'), cert);
    writeFileSync(join(server.data, 'server.key'), key);
    await server.execute(
      `ALTER ROLE keeper PASSWORD 'new'; SELECT pg_reload_conf();
       SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'keeper'`,
    );
    for (const [fault, name, content] of [
      ['(DEPTH_ZERO_SELF_SIGNED_CERT)', 'crt', cert.slice(0, 99)],
      ['(ERR_OSSL_PEM_BAD_END_LINE)', 'crt', undefined],
      ['no such file or directory', 'crt', cert],
      ['connection requires a valid client certificate', 'key', key],
      ['password authentication failed', 'url', undefined],
      ['DATABASE_URL_FILE cannot be read', 'url', 'postgres'],
      ['DATABASE_URL_FILE must be', 'url', 'sqlite:plants.db'],
      ['now contains the URL of', 'url', urlWith('new').replace('/postgres?', '/other?')],
      [`/other: database "other" does not exist`, 'url', urlWith('new')],
    ] as const) {
      await until(() => errors().at(-1)?.includes(fault) === true);
      if (content === undefined) rmSync(inFolder(name));
      else writeFileSync(inFolder(name), content);
    }

    await until(() => repository.isReady());
    expect(await repository.insert({ id: 2n, name: 'Fern' })).toBe('created');
    await repository.onApplicationShutdown();
    server.enableTls();
    await server.execute('SELECT pg_reload_conf()');
  });
});
