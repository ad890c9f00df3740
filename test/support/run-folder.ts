import { type ChildProcess, execFileSync } from 'node:child_process';
import { chmodSync, globSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Signals that end a run early, and the exit codes that a shell gives them. */
const EARLY_ENDS = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };

/** Where Linux keeps files in memory. */
const MEMORY = '/dev/shm';
/** The room that a run must find there, in bytes: twice what it was seen to use. */
const ROOM = 2 ** 31;

/** Builds what is outdated, and prepares the folder of a run (Jest's `globalSetup`). */
export default function prepareRun(): void {
  // Some tests run what is built: the service as a process, and the thread of SQLite.
  const tool = join(__dirname, '../../tools/if-stale.mjs');
  execFileSync(process.execPath, [tool, 'build'], {
    cwd: join(__dirname, '../..'),
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  makeRunFolder();
}

/**
 * Gives a run a temporary folder of its own, before its first test. All that the run puts into the
 * temporary folder of the system goes there. At the end of the process, be it by a signal, the folder is
 * removed and processes that the tests have left running end.
 */
export function makeRunFolder(): void {
  const [folder, memory] = [tmpdir(), hasRoom(MEMORY) ? MEMORY : tmpdir()].map((parent) => {
    const made = mkdtempSync(join(parent, 'plant-store-run-'));
    // PostgreSQL, which does not run as root, has its data in it.
    chmodSync(made, 0o755);
    process.once('exit', () => {
      cleanUp(made);
    });
    return made;
  });
  process.env.TMPDIR = folder;
  process.env.TEST_MEMORY = memory;
  for (const [signal, code] of Object.entries(EARLY_ENDS)) {
    process.once(signal, () => process.exit(code));
  }
}

/**
 * What a program under test finds in its environment: how to find others, OpenTelemetry, and a place for
 * compiled code, since most of the run's processor time is hundreds of processes that compile the same
 * files.
 */
export function programEnvironment(): NodeJS.ProcessEnv {
  return {
    PATH: process.env.PATH,
    NODE_PATH: join(__dirname, '../node_modules'),
    NODE_COMPILE_CACHE: join(tmpdir(), 'compiled'),
  };
}

/**
 * A folder in memory, if the system has one with enough space, for stores: a busy disk must not make tests
 * slow. It outlasts processes, not the machine. Programs may not be executable there.
 */
export function memoryFolder(): string {
  return process.env.TEST_MEMORY ?? tmpdir();
}

/** Has a process that a test started end with the run, should the test not end it. */
export function recordProcess(child: ChildProcess): void {
  const file = join(tmpdir(), `${String(child.pid)}.pid`);
  writeFileSync(file, '');
  child.once('exit', () => {
    rmSync(file, { force: true });
  });
}

function hasRoom(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize > ROOM;
  } catch {
    return false;
  }
}

function cleanUp(folder: string): void {
  for (const file of globSync('*.pid', { cwd: folder })) {
    try {
      // PostgreSQL ends its own processes on this signal, as it cannot on SIGKILL.
      process.kill(parseInt(file, 10), 'SIGQUIT');
    } catch {
      // It has ended by itself.
    }
  }
  // A process that is ending may still write.
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}
