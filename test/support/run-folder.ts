import { type ChildProcess, execFileSync } from 'node:child_process';
import { chmodSync, globSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';

/** The folder in which Linux keeps files in memory. */
const MEMORY_FOLDER = '/dev/shm';
/** The free space that a run needs in that folder: twice the measured use. */
const MIN_FREE_BYTES = 2 ** 31;

/** Builds `dist` if it is outdated, and creates the folder of the run (Jest's `globalSetup`). */
export default function prepareRun(): void {
  // Some tests use the build: they start the service as a process, or the worker thread of SQLite.
  execFileSync(process.execPath, ['tools/if-stale.mjs', 'build'], {
    cwd: join(__dirname, '../..'),
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  makeRunFolder();
}

/**
 * Creates the temporary folder of a run, before its first test. All temporary files of the run are created in
 * it. When this process ends, also by a signal, it removes the folder and ends the processes that tests have
 * left running.
 */
export function makeRunFolder(): void {
  const [folder, memory] = [tmpdir(), hasFreeSpace(MEMORY_FOLDER) ? MEMORY_FOLDER : tmpdir()].map(
    (parent) => {
      const created = mkdtempSync(join(parent, 'plant-store-run-'));
      // PostgreSQL has its data in it, and may run as another user.
      chmodSync(created, 0o755);
      process.once('exit', () => {
        cleanUp(created);
      });
      return created;
    },
  );
  process.env.TMPDIR = folder;
  process.env.TEST_MEMORY = memory;
  for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => process.exit(128 + constants.signals[signal]));
  }
}

/**
 * Returns the environment of a program under test. `NODE_PATH` lets it find OpenTelemetry. The compile cache
 * saves the processor time of hundreds of processes that compile the same files.
 */
export function programEnvironment(): NodeJS.ProcessEnv {
  return {
    PATH: process.env.PATH,
    NODE_PATH: join(__dirname, '../node_modules'),
    NODE_COMPILE_CACHE: join(tmpdir(), 'compiled'),
  };
}

/**
 * Returns a folder for stores. It is in memory if the system has enough of it, so that a busy disk does not
 * slow down the tests. Its files survive a crash of a process, but not of the machine. The system may not allow
 * programs in it to be executed.
 */
export function memoryFolder(): string {
  return process.env.TEST_MEMORY ?? tmpdir();
}

/** Records a process, so that it ends with the run at the latest. */
export function endProcessWithRun(child: ChildProcess): void {
  const file = join(tmpdir(), `${String(child.pid)}.pid`);
  writeFileSync(file, '');
  child.once('exit', () => {
    rmSync(file, { force: true });
  });
}

function hasFreeSpace(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize > MIN_FREE_BYTES;
  } catch {
    return false;
  }
}

function cleanUp(folder: string): void {
  for (const file of globSync('*.pid', { cwd: folder })) {
    try {
      // On this signal, PostgreSQL ends its child processes. On SIGKILL, it could not.
      process.kill(parseInt(file, 10), 'SIGQUIT');
    } catch {
      // The process has already ended.
    }
  }
  // A process that is ending may still write.
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}
