import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Contestant } from './contestants';
import type { LoadOptions, LoadResult } from './load';
import type { Turn } from './statistics';
import { findFreePort } from '../test/support/free-port';

/** The token that every contestant accepts. */
export const TOKEN = 'token-of-the-benchmark';

const LOAD = require.resolve('./load');

/** The rate is steady once it changes by less than this fraction from one turn to the next. */
const STEADY = 0.05;

/** All started processes. They are killed when the benchmark exits, even after a failure. */
const children: ChildProcess[] = [];
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

/** Passes descriptor 3 to a program as systemd does: `exec` keeps the process id in LISTEN_PID. */
const WITH_SOCKET = 'LISTEN_FDS=1 LISTEN_PID=$$ exec "$0" "$@"';

/** A listening socket that services inherit. */
export interface InheritedSocket {
  readonly port: number;
  readonly descriptor: number;
}

/** The load of a turn. {@link Server} chooses the ids. */
export type Load = Partial<Omit<LoadOptions, 'port' | 'firstId'>> &
  Pick<LoadOptions, 'connections' | 'duration'>;

export function connections(count: number, duration: number): Load {
  return { connections: count, duration };
}

/** A running contestant. */
export class Server {
  /** The number of plants that got 200. */
  created = 0;
  /** Shared, because several servers may use the same database. */
  private static nextId = 1_000_000_000;

  private constructor(
    readonly contestant: Contestant,
    readonly database: string,
    readonly port: number,
    private readonly child: ChildProcess,
    /** The time from the start of the process to the first response, in milliseconds. */
    readonly startupMs: number,
  ) {}

  /**
   * Starts a contestant and waits for its first response.
   *
   * @param socket a socket that our service inherits, as from systemd. It responds at another port, too
   */
  static async start(
    contestant: Contestant,
    database: string,
    socket?: InheritedSocket,
  ): Promise<Server> {
    const port = await findFreePort();
    const began = performance.now();
    const shell = socket ? ['-c', WITH_SOCKET, process.execPath] : [];
    const child = spawn(socket ? 'sh' : process.execPath, [...shell, contestant.program], {
      env: {
        PATH: process.env.PATH,
        NODE_ENV: 'production',
        [socket ? 'HEALTH_PORT' : 'PORT']: String(port),
        ...(contestant.isOurs
          ? {
              AUTH_TOKENS: TOKEN,
              LOG_LEVEL: 'error',
              DATABASE_URL: urlOf(contestant, database),
            }
          : { TOKEN, DATABASE: database }),
        ...contestant.environment,
      },
      stdio: ['ignore', 'ignore', 'inherit', ...(socket ? [socket.descriptor] : [])],
    });
    children.push(child);
    while (child.exitCode === null) {
      const response = await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined);
      if (response) {
        const startupMs = performance.now() - began;
        await contestant.prepare?.(`http://127.0.0.1:${port}`, TOKEN);
        return new Server(contestant, database, socket?.port ?? port, child, startupMs);
      }
      await setTimeout(5);
    }
    throw new Error(`${contestant.name} exited with code ${child.exitCode}`);
  }

  /** Puts load on the server until V8 has optimized the code: until its rate is steady. */
  async warmUp(): Promise<void> {
    let before = 0;
    let now = 0;
    for (let turn = 0; turn < 10 && Math.abs(now - before) >= now * STEADY; turn++) {
      before = now;
      now = (await this.measure(connections(64, 2))).rate ?? 0;
    }
  }

  /** Puts load on the server and measures it. The ids are new. */
  async measure(load: Load): Promise<Turn> {
    Server.nextId += 10_000_000;
    const options: LoadOptions = {
      port: this.port,
      token: TOKEN,
      firstId: Server.nextId,
      ...this.contestant.request,
      ...load,
    };
    const before = this.cpuTime();
    const { stdout } = await promisify(execFile)(process.execPath, [LOAD, JSON.stringify(options)]);
    const used = this.cpuTime() - before;
    const { requests, wrong, created, seconds, p50, p99, p999 } = JSON.parse(stdout) as LoadResult;
    if (wrong > 0) throw new Error(`${this.contestant.name}: ${wrong} unexpected responses`);
    this.created += created;
    return { rate: requests / seconds, cpu: (used * 1e6) / requests, p50, p99, p999 };
  }

  /** Returns the resident memory in MiB: now, and the peak so far. */
  memory(): { now: number; peak: number } {
    return memoryOf(this.child);
  }

  get pid(): number {
    return this.child.pid ?? NaN;
  }

  async stop(): Promise<void> {
    this.child.kill();
    await once(this.child, 'exit');
  }

  /** Returns the CPU time of all threads, user and system, in seconds: proc_pid_stat(5), in ticks of 10 ms. */
  private cpuTime(): number {
    const stat = readFileSync(`/proc/${this.child.pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) / 100;
  }
}

/** Returns the resident memory of a running process in MiB: now, and the peak so far. */
export function memoryOf({ pid }: ChildProcess): { now: number; peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const kibibytes = (field: string): number =>
    Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1]);
  return { now: kibibytes('VmRSS') / 1024, peak: kibibytes('VmHWM') / 1024 };
}

function urlOf({ store }: Contestant, database: string): string {
  return store === 'postgres' ? database : `sqlite:${database}`;
}
