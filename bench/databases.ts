import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PostgresServer } from '../test/support/postgres';
import { makeRunFolder } from '../test/support/run-folder';
import type { Contestant } from './contestants';

/** The source of the library that delays syncs. The benchmark runs in the folder of the project. */
const SLOW_SYNC = 'bench/slow-sync.c';

/** The databases of a run: new SQLite files in one folder, and new databases of one PostgreSQL server. */
export class Databases {
  private count = 0;

  private constructor(
    readonly folder: string,
    readonly postgres: PostgresServer,
    /** Variables that each server needs for the delay of its syncs. */
    readonly environment: Readonly<Record<string, string>>,
  ) {}

  /** @param syncMs by how much each sync takes longer than on this disk, in milliseconds */
  static async start(syncMs = 0): Promise<Databases> {
    makeRunFolder();
    const folder = mkdtempSync(join(tmpdir(), 'bench-'));
    const environment = syncMs === 0 ? {} : delaySyncs(tmpdir(), syncMs);
    // Unlike the tests' server, this one syncs every commit.
    const postgres = await PostgresServer.create({});
    const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
    await postgres.start(['env', ...variables]);
    return new Databases(folder, postgres, environment);
  }

  newFile(): string {
    return join(this.folder, `plants_${++this.count}.db`);
  }

  /** Creates an empty PostgreSQL database. Returns its name. */
  async newPostgresDatabase(): Promise<string> {
    const name = `plants_${++this.count}`;
    await this.postgres.execute(`CREATE DATABASE ${name}`);
    return name;
  }

  /** Creates an empty database. Returns its URL, or the path of its file. */
  async create(store: Contestant['store']): Promise<string> {
    if (store !== 'postgres') return this.newFile();
    return this.postgres.url(await this.newPostgresDatabase());
  }

  async remove(): Promise<void> {
    await this.postgres.remove();
  }
}

/** Compiles the library that delays syncs. Returns the variables that load it. */
function delaySyncs(folder: string, syncMs: number): Record<string, string> {
  const library = join(folder, 'slow-sync.so');
  execFileSync('cc', ['-shared', '-fPIC', '-O2', '-o', library, SLOW_SYNC, '-ldl']);
  return { LD_PRELOAD: library, SYNC_MS: String(syncMs) };
}
