import { creation, putLoad } from '../support/load';
import { plantStore } from '../support/plant-store';
import { useServiceHome } from '../support/service-process';
import { SmallMemory } from '../support/small-memory';
import { stores } from '../support/stores';

const KIB = 1024;
const MIB = 1024 * KIB;

/** Milliseconds. */
const DURATION = 15_000;

const home = useServiceHome();
let memory: SmallMemory;
// Once its processes have ended with the home.
afterEach(() => memory.remove());

it.each([
  { limit: 256, connections: 32, size: 64 * KIB, statuses: ['200'] },
  { limit: 256, connections: 1024, size: 64 * KIB, statuses: ['200', '503'] },
  { limit: 320, connections: 64, size: MIB, statuses: ['200', '503'] },
  { limit: 512, connections: 256, size: MIB, statuses: ['200', '503'] },
])(
  'a memory of $limit MiB is enough to answer $statuses to $connections callers with bodies of $size bytes',
  async ({ limit, connections, size, statuses }) => {
    memory = SmallMemory.make(limit * MIB);
    const service = await home.start({}, memory.wrapper);
    const url = await service.url();
    const name = 'x'.repeat(size - 64);
    let id = 0;
    const end = performance.now() + DURATION;
    const next = () => (performance.now() < end ? creation(++id, name) : undefined);

    const counts = await putLoad({ url, connections, next });

    expect(counts).toHaveProperty('200');
    expect(statuses).toEqual(expect.arrayContaining(Object.keys(counts)));
    expect((await service.post('{"id":0,"name":"Fern"}')).status).toBe(200);
    expect(await service.end()).toEqual({ code: 0, signal: null });
  },
);

it.each(stores)(
  'a memory of 160 MiB is enough to move 200,000 plants into %s, and out again',
  async (_name, startStore) => {
    memory = SmallMemory.make(160 * MIB);
    const store = await startStore();
    const lines = Array.from({ length: 200_000 }, (_, id) => `{"id":${id},"name":"Fern ${id}"}\n`);
    const run = (command: string, input = '') =>
      plantStore([command], { DATABASE_URL: store.url }, { wrapper: memory.wrapper, input });

    expect(await run('import', lines.join(''))).toMatchObject({ code: 0 });
    expect((await run('export')).stdout).toBe(lines.join(''));
    await store.remove();
  },
);
