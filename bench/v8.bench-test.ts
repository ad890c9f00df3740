/** @alone because it watches the compiler. */

import { makeFolder, removeFolder } from '../test/support/folder';
import { creation, putLoad } from '../test/support/load';
import { readMetric } from '../test/support/metrics';
import { ServiceProcess } from '../test/support/service-process';
import { until } from '../test/support/until';

/** Has V8 print a line for each place in the code that it thinks of treating otherwise. */
const TRACE_PRETENURING = `
  import { setFlagsFromString } from 'node:v8';
  setFlagsFromString('--trace-pretenuring-statistics');`;

/** Has a process, at a signal, collect its garbage as often as V8 keeps shapes, and tell what V8 knows of ticks. */
const TELL_SHAPES = `
  import { setTimeout } from 'node:timers/promises';
  import { setFlagsFromString } from 'node:v8';
  import { runInNewContext } from 'node:vm';
  setFlagsFromString('--expose-gc');
  setFlagsFromString('--allow-natives-syntax');
  const collect = runInNewContext('gc');
  const feedback = new Function('code', 'return %GetFeedback(code)');
  process.on('SIGUSR2', async () => {
    for (let count = 0; count < 10; count++) {
      await setTimeout(1);
      collect();
    }
    const members = feedback(process.nextTick).filter(([kind]) => kind.startsWith('Define'));
    console.log('shapes: ' + members.map(([, state]) => state).join(' '));
  });`;

describe('the service on V8', () => {
  let folder: string;
  let service: ServiceProcess;
  let lastId = 0;
  afterEach(async () => {
    service.kill('SIGTERM');
    await service.ended;
    removeFolder(folder);
  });

  /** Starts the service with a module loaded before its own. */
  async function start(module = ''): Promise<void> {
    folder = makeFolder();
    service = await ServiceProcess.start(folder, {
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(module)}`,
    });
  }

  async function create(count: number, connections = 64, name?: string): Promise<void> {
    const end = lastId + count;
    await putLoad({
      url: await service.url(),
      connections,
      next: () => (lastId < end ? creation(++lastId, name) : undefined),
      onAnswer: (_id, { status }) => {
        expect(status).toBe(200);
      },
    });
  }

  it('has V8 keep what requests need in the young generation', async () => {
    await start(TRACE_PRETENURING);
    const whileStarting = service.stdout.length;

    await create(20_000);

    service.kill('SIGTERM');
    await service.ended;
    expect(service.stdout).toContain('AllocationSite');
    expect(service.stdout.slice(whileStarting)).not.toContain('AllocationSite');
  }, 60_000);

  it('has V8 know the shape of ticks, however long it has waited', async () => {
    await start(TELL_SHAPES);
    const tellShapes = async (): Promise<string | undefined> => {
      const { length } = service.stdout;
      service.kill('SIGUSR2');
      await until(() => service.stdout.includes('shapes: ', length));
      return /shapes: (.*)/.exec(service.stdout.slice(length))?.[1];
    };

    await create(3000);
    await tellShapes();
    await create(3000);

    expect(await tellShapes()).toMatch(/^(MONOMORPHIC ?){5}$/);
  }, 60_000);

  it('has V8 stop at half of its young generation', async () => {
    await start();

    await create(16_000, 250, 'Fern'.padEnd(3000));

    const size = await readMetric(
      await service.url(),
      'nodejs_heap_space_size_total_bytes{space="new"}',
    );
    expect(size / 2 ** 20).toBeLessThanOrEqual(32);
  }, 60_000);
});
