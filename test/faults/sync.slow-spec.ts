import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Plant } from '../../src/plants';
import { type Creation, creation, expectKept, Load } from '../support/load';
import { PostgresServer } from '../support/postgres';
import { type ServiceProcess, useServiceHome } from '../support/service-process';
import { strace, tracee } from '../support/strace';
import { until } from '../support/until';

const CREATIONS = 1000;
const CALLS = 'pwrite64,fsync,fdatasync,write,writev,sendmsg';

/** What strace saw, in the order in which it ended: of writes the names in them. */
interface Call {
  readonly kind: 'log written' | 'log synced' | 'answered';
  /** Lines of the trace at which it began and ended. */
  readonly began: number;
  readonly ended: number;
  readonly names: readonly string[];
}

describe('each acknowledged creation', () => {
  const home = useServiceHome();

  it('is written to the log, then the log is synced, and only then it is answered', async () => {
    const trace = join(home.folder, 'trace');
    const wrapper = strace('-y', '-s', '8192', '-e', `trace=${CALLS}`, '-o', trace);
    const service = await home.start({}, wrapper);
    let count = 0;
    const { counts } = await Load.put({
      urls: [await service.url()],
      connections: 8,
      next: () => {
        const name = `plant-${String(count + 1).padStart(6, '0')}`;
        return count < CREATIONS ? creation(++count, name) : undefined;
      },
    });
    process.kill(tracee(service.pid), 'SIGTERM');
    await service.ended;

    const calls = parse(readFileSync(trace, 'latin1'));
    const syncs = calls.filter(({ kind }) => kind === 'log synced');
    const written = firstByName(calls, 'log written');
    const answered = firstByName(calls, 'answered');
    const uncovered = [...answered].filter(([name, answer]) => {
      const write = written.get(name);
      return !syncs.some((sync) => write && sync.began > write.ended && sync.ended < answer.began);
    });
    expect(counts).toEqual({ 200: CREATIONS });
    expect(answered.size).toBe(CREATIONS);
    expect(uncovered).toEqual([]);
  });
});

describe('commits that take six or eight seconds', () => {
  const home = useServiceHome();
  let service: ServiceProcess;
  let creations: readonly Creation[];
  let longest = 0;

  async function start(url?: string): Promise<void> {
    service = await home.start({ MAX_CONNECTIONS: '4000', DATABASE_URL: url });
    // Alone, because a new log is synced twice.
    await service.post('{"id":0,"name":"Fern"}');
  }

  /** Creates as many plants at once as fill two batches and a bit. */
  async function createMany(): Promise<void> {
    let nextId = 1;
    const begin = performance.now();
    const load = new Load({
      urls: [await service.url()],
      connections: 2600,
      next: () => (nextId <= 2600 ? creation(nextId++) : undefined),
      onAnswer: () => (longest = performance.now() - begin),
    });
    await until(async () => (await service.statusOf('/health/ready')) === 503);
    await load.done;
    ({ creations } = load);
  }

  function expectPromisesHeld(plants: readonly Plant[]): void {
    // The promise is 20 seconds. Without it, the last is answered after 32.
    expect(longest).toBeLessThan(23_000);
    expect(new Set(creations.map(({ outcome }) => outcome))).toEqual(new Set([200, 50300]));
    expectKept(creations, plants);
  }

  it('let no creation on SQLite wait for longer than the limits, and the service is not ready meanwhile', async () => {
    await start();
    const trace = join(home.folder, 'trace');
    const [program = '', ...options] = strace('-p', String(service.pid), '-o', trace);
    const inject = 'inject=fsync,fdatasync:delay_exit=8000000';
    const slow = spawn(program, [...options, '-e', 'trace=fsync,fdatasync', '-e', inject]);
    const status = () => readFileSync(`/proc/${service.pid}/status`, 'utf8');
    await until(() => /TracerPid:\t[1-9]/.test(status()));

    await createMany();

    expectPromisesHeld(home.plants());
    const readiness = new Set<number>();
    const syncs = () => readFileSync(trace, 'latin1').split('\n').length;
    const enough = syncs() + 3;
    await until(async () => {
      readiness.add(await service.statusOf('/health/ready'));
      return syncs() >= enough;
    });
    expect(readiness).toEqual(new Set([503]));
    slow.kill();
    await once(slow, 'close');
    await service.untilReady();
  });

  it('let no creation on PostgreSQL wait for longer than the limits', async () => {
    const server = await PostgresServer.start();
    await start(server.url());
    await server.execute(
      `CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN PERFORM pg_sleep(6); RETURN NULL; END $$;
       CREATE TRIGGER wait BEFORE INSERT ON plants EXECUTE FUNCTION wait()`,
    );

    await createMany();

    expectPromisesHeld(await server.plants());
    await service.untilReady();
    await service.end('SIGKILL');
    await server.remove();
  });
});

function parse(trace: string): Call[] {
  const calls: Call[] = [];
  const unfinished = new Map<string, { text: string; began: number }>();
  for (const [at, line] of trace.split('\n').entries()) {
    const [, thread = '', text = ''] = /^(\d+) +(.*)$/.exec(line) ?? [];
    if (text.endsWith('<unfinished ...>')) {
      unfinished.set(thread, { text, began: at });
      continue;
    }
    const begun = text.startsWith('<...') ? unfinished.get(thread) : undefined;
    const whole = (begun?.text ?? '') + text;
    const kind = kindOf(whole);
    if (kind === undefined) continue;
    const names = [...whole.matchAll(/plant-\d{6}/g)].map(([name]) => name);
    calls.push({ kind, began: begun?.began ?? at, ended: at, names });
  }
  return calls;
}

function kindOf(call: string): Call['kind'] | undefined {
  if (/^pwrite64\(\d+<[^>]*-wal>/.test(call)) return 'log written';
  if (/^f(?:data)?sync\(\d+<[^>]*-wal>.*= 0$/.test(call)) return 'log synced';
  if (/^(?:write|writev|sendmsg)\(.*HTTP\/1\.1 200/.test(call)) return 'answered';
  return undefined;
}

function firstByName(calls: readonly Call[], kind: Call['kind']): Map<string, Call> {
  const first = new Map<string, Call>();
  for (const call of calls) {
    if (call.kind !== kind) continue;
    for (const name of call.names) if (!first.has(name)) first.set(name, call);
  }
  return first;
}
