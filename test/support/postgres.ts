import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, chmodSync, chownSync, cpSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, type Pool } from 'pg';
import type { Plant } from '../../src/plants';
import { makeFolder, removeFolder } from './folder';
import { freePort } from './free-port';
import { ENVIRONMENT, programPath, shared, USER } from './postgres-programs';
import { memoryFolder, recordProcess } from './run-folder';
import { until } from './until';

const CERTIFICATES = join(__dirname, 'tls');
/** The certificate of a server that offers TLS, for `sslrootcert`. */
export const CERTIFICATE = join(CERTIFICATES, 'server.crt');

/** Settings for speed; a kill of the processes loses nothing with them, only one of the machine. */
const FAST = { fsync: 'off', full_page_writes: 'off' };

type ServerSettings = Readonly<Record<string, string | number>>;

/** A real PostgreSQL server with data of its own, on a free port of the loopback interface. */
export class PostgresServer {
  private child: ChildProcess | undefined;
  /** Everything it has logged. */
  log = '';

  private constructor(
    private readonly folder: string,
    readonly port: number,
    private readonly settings: ServerSettings,
  ) {}

  static async start(settings: ServerSettings = FAST): Promise<PostgresServer> {
    const server = await PostgresServer.make(settings);
    await server.start();
    return server;
  }

  /** Makes a server that is not started yet. */
  static async make(settings: ServerSettings = FAST): Promise<PostgresServer> {
    return PostgresServer.copy(join(shared(), 'data'), settings);
  }

  /** Makes a server that starts with a copy of a data directory that no server uses. */
  private static async copy(data: string, settings: ServerSettings): Promise<PostgresServer> {
    // Without fsync it promises no more than memory keeps.
    const folder = makeFolder(settings.fsync === 'off' ? memoryFolder() : tmpdir());
    if (USER) chmodSync(folder, 0o755);
    const server = new PostgresServer(folder, await freePort(), settings);
    execFileSync('cp', ['-a', data, server.data]);
    return server;
  }

  get data(): string {
    return join(this.folder, 'data');
  }

  url(database = 'postgres'): string {
    return `postgres://postgres@127.0.0.1:${this.port}/${database}`;
  }

  /** Starts the server and waits until it takes connections. */
  async start(): Promise<void> {
    const settings = {
      listen_addresses: '127.0.0.1',
      unix_socket_directories: '',
      // In the data directory, so that a server that is killed leaves nothing elsewhere.
      dynamic_shared_memory_type: 'mmap',
      ...this.settings,
    };
    const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const args = ['-D', this.data, '-p', String(this.port), ...options];
    const child = spawn(programPath('postgres'), args, {
      ...USER,
      cwd: this.data,
      env: ENVIRONMENT,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    recordProcess(child);
    child.stderr.on('data', (chunk) => (this.log += String(chunk)));
    this.child = child;
    const begin = this.log.length;
    await until(() => {
      if (child.exitCode !== null) throw new Error(this.log);
      return this.log.includes('is ready to accept', begin);
    });
  }

  /** SIGTERM waits for sessions to end, SIGINT ends them, SIGKILL is a crash. */
  async stop(signal: NodeJS.Signals = 'SIGINT'): Promise<void> {
    const { child } = this;
    this.child = undefined;
    if (child === undefined) return;
    const closed = once(child, 'close');
    child.kill(signal);
    // Sessions hold the output open until they have noticed that the server is gone.
    await closed;
  }

  /** Stops the server for good. */
  async remove(): Promise<void> {
    await this.stop('SIGQUIT');
    removeFolder(this.folder);
  }

  /** Starts a standby beside this server, which must not be started yet and is then started too. */
  async startStandby(): Promise<PostgresServer> {
    const standby = await PostgresServer.copy(this.data, {
      primary_conninfo: `host=127.0.0.1 port=${this.port} user=postgres application_name=standby`,
    });
    writeFileSync(join(standby.data, 'standby.signal'), '');
    await this.start();
    await standby.start();
    return standby;
  }

  /** Runs statements in a database, on a connection of its own. */
  execute(statements: string, database?: string): Promise<Record<string, unknown>[]> {
    return this.connected(database, async (client) => {
      const { rows } = await client.query<Record<string, unknown>>(statements);
      return rows;
    });
  }

  plants(database?: string): Promise<Plant[]> {
    return this.connected(database, readPostgresPlants);
  }

  /** Changes settings while the server runs; its sessions may take a moment to notice. */
  async reconfigure(...statements: string[]): Promise<void> {
    for (const statement of statements) await this.execute(`ALTER SYSTEM ${statement}`);
    await this.execute('SELECT pg_reload_conf()');
  }

  /** Has it offer TLS from its next start on, with a certificate for "localhost" that signs itself. */
  offerTls(): void {
    for (const name of ['server.crt', 'server.key']) {
      const file = join(this.data, name);
      cpSync(join(CERTIFICATES, name), file);
      chmodSync(file, 0o600);
      if (USER) chownSync(file, USER.uid, USER.gid);
    }
    appendFileSync(join(this.data, 'postgresql.conf'), 'ssl = on\n');
  }

  /** Puts a line before the others of pg_hba.conf, which says who may connect and how. */
  async admit(line: string): Promise<void> {
    const file = join(this.data, 'pg_hba.conf');
    writeFileSync(file, `${line}\n${readFileSync(file, 'utf8')}`);
    await this.execute('SELECT pg_reload_conf()');
  }

  private async connected<T>(
    database: string | undefined,
    work: (client: Client) => Promise<T>,
  ): Promise<T> {
    const client = new Client(this.url(database));
    await client.connect();
    try {
      return await work(client);
    } finally {
      await client.end();
    }
  }
}

export async function readPostgresPlants(database: Pool | Client): Promise<Plant[]> {
  const { rows } = await database.query<{ id: string; name: string; tag: string | null }>(
    'SELECT id, name, tag FROM plants ORDER BY id',
  );
  return rows.map(({ id, name, tag }) => ({ id: BigInt(id), name, ...(tag !== null && { tag }) }));
}
