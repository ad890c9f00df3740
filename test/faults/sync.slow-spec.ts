/** Traces or delays the syncs of the service. Needs Linux and strace. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { TOKEN } from '../support/application';
import { errorNumbers } from '../support/error-bodies';
import {
  type CreateRequest,
  createMany,
  createRequest,
  expectOutcomesMatch,
  Load,
} from '../support/load';
import { type ServiceProcess, useServiceHome } from '../support/service-process';
import { readTraces, createStraceWrapper, findTracee } from '../support/strace';
import { until } from '../support/until';

const CREATE_REQUESTS = 1000;
const TRACED_CALLS = 'pwrite64,fsync,fdatasync,write,writev,sendmsg';

const home = useServiceHome();

it('the service writes and syncs the WAL before it responds', async () => {
  const trace = join(home.folder, 'trace');
  const options = ['-ff', '-ttt', '-T', '-y', '-s', '8192', '-o', trace];
  const wrapper = createStraceWrapper(...options, '-e', `trace=${TRACED_CALLS}`);
  const service = await home.start({}, wrapper);
  let count = 0;
  const { creations, counts } = await Load.run({
    urls: [await service.url()],
    connections: 8,
    next: () => {
      const name = `plant-${String(count + 1).padStart(6, '0')}`;
      return count < CREATE_REQUESTS ? createRequest(++count, name) : undefined;
    },
  });
  process.kill(findTracee(service.pid), 'SIGTERM');
  await service.ended;

  const calls = readTraces(trace).map(parse);
  const written = calls.filter(({ text }) => /^pwrite64\(\d+<[^>]*-wal>/.test(text));
  const syncs = calls.filter(({ text }) => /^f(?:data)?sync\(\d+<[^>]*-wal>.*= 0$/.test(text));
  const answered = calls.filter(({ text }) => /^(?:write|writev|sendmsg)\(.*1 200/.test(text));
  const uncovered = creations.filter(({ name }) => {
    const write = written.find(({ text }) => text.includes(name));
    const response = answered.find(({ text }) => text.includes(name));
    const isBetween = ({ began, ended }: Call) =>
      write && response && began >= write.ended && ended <= response.began;
    return !syncs.some(isBetween);
  });
  expect(counts).toEqual({ 200: CREATE_REQUESTS });
  expect(uncovered).toEqual([]);
});

/** Makes every sync of a service slow from now on. Resolves to strace, once it traces the service. */
async function slowDown(
  { pid }: ServiceProcess,
  trace: string,
  seconds: number,
): Promise<ChildProcess> {
  const [program = '', ...options] = createStraceWrapper('-p', String(pid), '-o', trace);
  const inject = `inject=fsync,fdatasync:delay_exit=${seconds * 1_000_000}`;
  const strace = spawn(program, [...options, '-e', 'trace=fsync,fdatasync', '-e', inject]);
  await until(() => /TracerPid:\t[1-9]/.test(readFileSync(`/proc/${pid}/status`, 'utf8')));
  return strace;
}

it('the service ends at once on a second signal when the disk does not respond', async () => {
  const service = await home.start({ SHUTDOWN_GRACE: '5m', SHUTDOWN_TIMEOUT: '6m' });
  // Longer than the test may take.
  const slow = await slowDown(service, join(home.folder, 'trace'), 300);
  void service.post('{"id":1,"name":"Fern"}').catch(() => undefined);
  await until(async () => (await service.getStatus('/health/ready')) === 503);

  service.kill('SIGTERM');
  await service.waitForOutput(/Received SIGTERM/);
  service.kill('SIGTERM');
  // Otherwise the signal could be lost with the tracer, which passes it on.
  await until(() => isZombie(service));

  // A traced process ends only with its tracer.
  slow.kill('SIGKILL');
  expect(await service.ended).toEqual({ code: null, signal: 'SIGKILL' });
});

/** Whether the main thread of a service has ended. Another thread may still wait for the disk. */
function isZombie({ pid }: ServiceProcess): boolean {
  return readFileSync(`/proc/${pid}/status`, 'utf8').includes('State:\tZ');
}

it('the service ends by SHUTDOWN_TIMEOUT when the disk does not respond, also after the batch has timed out', async () => {
  const service = await home.start({ SHUTDOWN_TIMEOUT: '12s' });
  const slow = await slowDown(service, join(home.folder, 'trace'), 300);
  const posting = service.post('{"id":1,"name":"Fern"}');
  await until(async () => (await service.getStatus('/health/ready')) === 503);

  service.kill('SIGTERM');

  expect((await posting).status).toBe(504);
  await service.waitForOutput(/did not shut down within/, 'stderr');
  // A traced process ends only with its tracer.
  slow.kill('SIGKILL');
  expect(await service.ended).toEqual({ code: null, signal: 'SIGKILL' });
});

it('the service ends by a signal at startup when the disk does not respond', async () => {
  const first = await home.start();
  await createMany(10, first, []);
  await first.end('SIGKILL');
  const trace = join(home.folder, 'trace');
  const calls = ['-e', 'trace=fsync', '-e', 'inject=fsync:delay_enter=300s', '-o', trace];
  // Strace runs as a grandchild, so the service is the child of the test.
  const service = home.spawn({ AUTH_TOKENS: TOKEN }, createStraceWrapper('-D', ...calls));
  const tracer = () =>
    Number(/TracerPid:\t(\d+)/.exec(readFileSync(`/proc/${service.pid}/status`, 'utf8'))?.[1]);
  await service.waitForOutput(/Storing plants in/);
  await until(() => readFileSync(trace, 'utf8').includes('fsync'));
  const strace = tracer();

  service.kill('SIGTERM');

  process.kill(strace, 'SIGKILL');
  expect(await service.ended).toEqual({ code: null, signal: 'SIGTERM' });
});

it('the service keeps every request within its time limit, and is not ready, while commits take 8 seconds', async () => {
  const service = await home.start({ MAX_CONNECTIONS: '4000' });
  const creations: CreateRequest[] = [];
  // This plant is created before the delay begins, because a new WAL is synced twice.
  await createMany(1, service, creations);
  const trace = join(home.folder, 'trace');
  const slow = await slowDown(service, trace, 8);

  // These requests fill two batches and part of a third.
  const load = createMany(2600, service, creations, { connections: 2600 });
  await until(async () => (await service.getStatus('/health/ready')) === 503);
  await load;

  // Plants that wait too long for their batch are rejected. Without the time limit, all would get 200.
  const outcomes = new Set(creations.map(({ outcome }) => outcome));
  expect(outcomes).toEqual(new Set([200, errorNumbers.unavailable]));
  expectOutcomesMatch(creations, home.plants());
  const readiness = new Set<number>();
  const syncs = () => readFileSync(trace, 'latin1').split('\n').length;
  const enough = syncs() + 3;
  await until(async () => {
    readiness.add(await service.getStatus('/health/ready'));
    return syncs() >= enough;
  });
  expect(readiness).toEqual(new Set([503]));
  slow.kill();
  await once(slow, 'close');
  await service.waitUntilReady();
});

interface Call {
  readonly text: string;
  /** In seconds since 1970. */
  readonly began: number;
  readonly ended: number;
}

/** Reads a line that strace wrote with `-ttt` and `-T`. */
function parse(line: string): Call {
  const [, began, text = '', took] = /^(\S+) (.*) <([\d.]+)>$/.exec(line) ?? [];
  return { text, began: Number(began), ended: Number(began) + Number(took) };
}
