import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readFile } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { type Contestant, programOf } from './contestants';
import type { LoadOptions, LoadResult } from './load';
import { freePort } from '../test/support/free-port';

/** The token that every contestant accepts. */
export const TOKEN = 'bench-token';

const LOAD = require.resolve('./load');

/** Where servers write what they are asked for. */
const FOLDER = mkdtempSync(join(tmpdir(), 'plant-store-bench-'));

/** One measurement of a server under load. */
export interface Measurement extends LoadResult {
  /** Requests a second. */
  readonly rate: number;
  /** Microseconds of the server's CPU a request, all its threads, as the operating system counts. */
  readonly cpu: number;
}

/** Has a program write how many bytes its main thread has allocated, at a signal. */
const TELL_ALLOCATED = `
  import { renameSync, writeFileSync } from 'node:fs';
  import { getHeapStatistics } from 'node:v8';
  const file = process.env.ALLOCATED_BYTES;
  process.on('SIGUSR2', () => {
    writeFileSync(file + '-new', String(getHeapStatistics().total_allocated_bytes));
    renameSync(file + '-new', file);
  });`;

/** All that were started: none outlives a run that failed. */
const children: ChildProcess[] = [];
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(FOLDER, { recursive: true });
});

/** A contestant that runs. */
export class Server {
  private constructor(
    readonly contestant: Contestant,
    readonly port: number,
    private readonly child: ChildProcess,
    private readonly allocated: string,
    /** Milliseconds from the start of the process to the first answer. */
    readonly startUp: number,
  ) {}

  /** Starts a contestant and waits for its first answer. */
  static async start(contestant: Contestant, database: string): Promise<Server> {
    const port = await freePort();
    const allocated = join(FOLDER, `allocated-${port}`);
    const began = performance.now();
    const child = spawn(process.execPath, [programOf(contestant)], {
      env: {
        PATH: process.env.PATH,
        NODE_ENV: 'production',
        NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(TELL_ALLOCATED)}`,
        ALLOCATED_BYTES: allocated,
        PORT: String(port),
        ...(contestant.ours
          ? {
              AUTH_TOKENS: TOKEN,
              LOG_LEVEL: 'error',
              ...(contestant.store === 'none' ? {} : { DATABASE_URL: urlOf(contestant, database) }),
            }
          : { TOKEN, DATABASE: database }),
        ...contestant.environment,
      },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    children.push(child);
    while (child.exitCode === null) {
      const answer = await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined);
      if (answer) return new Server(contestant, port, child, allocated, performance.now() - began);
      await setTimeout(5);
    }
    throw new Error(`${contestant.name} ended with ${child.exitCode}`);
  }

  /** Puts load on the server and measures it. */
  async measure(load: Omit<LoadOptions, 'port' | 'token'>, token = TOKEN): Promise<Measurement> {
    const before = this.cpuTime();
    const options: LoadOptions = { ...load, port: this.port, token };
    const { stdout } = await promisify(execFile)(process.execPath, [LOAD, JSON.stringify(options)]);
    const used = this.cpuTime() - before;
    const result = JSON.parse(stdout) as LoadResult;
    return {
      ...result,
      rate: result.requests / result.seconds,
      cpu: (used * 1e6) / result.requests,
    };
  }

  get pid(): number {
    return this.child.pid ?? NaN;
  }

  /** How many bytes its main thread has allocated on its heap so far. */
  async allocatedBytes(): Promise<number> {
    rmSync(this.allocated, { force: true });
    this.child.kill('SIGUSR2');
    for (;;) {
      const text = await readFile(this.allocated, 'utf8').catch(() => '');
      if (text !== '') return Number(text);
      await setTimeout(10);
    }
  }

  /** Mebibytes of resident memory: now, and at the most so far. */
  memory(): { now: number; peak: number } {
    const status = readFileSync(`/proc/${this.child.pid}/status`, 'utf8');
    const kibibytes = (field: string): number =>
      Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1]);
    return { now: kibibytes('VmRSS') / 1024, peak: kibibytes('VmHWM') / 1024 };
  }

  async stop(): Promise<void> {
    this.child.kill();
    await once(this.child, 'exit');
  }

  /** Seconds of CPU, user and system, all threads: proc_pid_stat(5), in ticks of 10 ms. */
  private cpuTime(): number {
    const stat = readFileSync(`/proc/${this.child.pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) / 100;
  }
}

function urlOf({ store }: Contestant, database: string): string {
  return store === 'sqlite' ? `sqlite:${database}` : database;
}
