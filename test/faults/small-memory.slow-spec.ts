import { creation, putLoad } from '../support/load';
import { useServiceHome } from '../support/service-process';
import { SmallMemory } from '../support/small-memory';

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
  { limit: 256, connections: 64, size: MIB, statuses: ['200', '503'] },
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
