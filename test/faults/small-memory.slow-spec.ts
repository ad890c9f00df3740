import { once } from 'node:events';
import { TOKEN } from '../support/application';
import { creation, Load } from '../support/load';
import { plantStore } from '../support/plant-store';
import { useServiceHome } from '../support/service-process';
import { SmallMemory } from '../support/small-memory';
import { stores } from '../support/stores';
import { exchange, open } from '../support/wire';

const KIB = 1024;
const MIB = 1024 * KIB;

/** Milliseconds. */
const DURATION = 15_000;
/** A slow machine should not answer 408. */
const PATIENT = { HEADERS_TIMEOUT: '30s', REQUEST_TIMEOUT: '60s' };

const home = useServiceHome();
let memory: SmallMemory;
// Once its processes have ended with the home.
afterEach(() => memory.remove());

it.each([
  { limit: 256, connections: 32, size: 64 * KIB, outcomes: ['200'] },
  { limit: 256, connections: 1024, size: 64 * KIB, outcomes: ['200', '50300'] },
  { limit: 320, connections: 64, size: MIB, outcomes: ['200', '50300'] },
  { limit: 512, connections: 256, size: MIB, outcomes: ['200', '50300'] },
])(
  'a memory of $limit MiB is enough to answer $outcomes to $connections callers with bodies of $size bytes',
  async ({ limit, connections, size, outcomes }) => {
    memory = SmallMemory.make(limit * MIB);
    const service = await home.start(PATIENT, memory.wrapper);
    const url = await service.url();
    const name = 'x'.repeat(size - 64);
    let id = 0;
    const end = performance.now() + DURATION;
    const next = () => (performance.now() < end ? creation(++id, name) : undefined);

    const { counts } = await Load.put({ urls: [url], connections, next });

    expect(counts).toHaveProperty('200');
    expect(outcomes).toEqual(expect.arrayContaining(Object.keys(counts)));
    expect((await service.post('{"id":0,"name":"Fern"}')).status).toBe(200);
    expect(await service.end()).toEqual({ code: 0, signal: null });
  },
);

it.each(['', 'Authorization: Bearer wrong\r\n'])(
  'a memory of 320 MiB is enough for creations beside 1,000 strangers who send "%s" and announce a body',
  async (credentials) => {
    memory = SmallMemory.make(320 * MIB);
    const service = await home.start({}, memory.wrapper);
    const url = await service.url();
    const head = `POST /plants HTTP/1.1\r\nHost: x\r\n${credentials}Content-Length: ${MIB}\r\n\r\n`;
    const strangers = Array.from({ length: 1000 }, () => open(url));

    const answers = strangers.map(async (socket) => {
      socket.write(head);
      const [chunk] = (await once(socket, 'data')) as [Buffer];
      return chunk.toString().slice(9, 12);
    });
    expect(new Set(await Promise.all(answers))).toEqual(new Set(['401']));

    const authorized = `POST /plants HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\n`;
    const large = `{"id":2,"name":"${'x'.repeat(MIB - 64)}"}`;
    for (const request of [
      'Content-Length: 22\r\n\r\n{"id":1,"name":"Fern"}',
      `Content-Length: ${large.length}\r\n\r\n${large}`,
      'Transfer-Encoding: chunked\r\n\r\n16\r\n{"id":3,"name":"Fern"}\r\n0\r\n\r\n',
      'Expect: 100-continue\r\nContent-Length: 22\r\n\r\n{"id":4,"name":"Fern"}',
    ]) {
      expect((await exchange(url, authorized + request)).at(-1)).toMatchObject({ status: 200 });
    }
    for (const socket of strangers) socket.destroy();
  },
);

const REFUSED = 'PUT /nothing HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n';

it.each([
  [1163, '15,900 fields', `POST /plants HTTP/1.1\r\nHost: x\r\n${'a:\r\n'.repeat(15_900)}`],
  [2000, 'a field of 15.9 kB', `POST /plants HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(15_900)}`],
  [1000, 'trailers of 15,900 fields', REFUSED + 'a:\r\n'.repeat(15_900)],
])(
  'a memory of 320 MiB is enough for creations beside %d strangers who send %s without the end',
  async (count, _what, text) => {
    memory = SmallMemory.make(320 * MIB);
    const service = await home.start(PATIENT, memory.wrapper);
    const url = await service.url();

    const strangers = Array.from({ length: count }, () => open(url).on('error', () => undefined));
    await Promise.all(strangers.map((socket) => once(socket, 'connect')));
    await Promise.all(
      strangers.map((socket) => new Promise((resolve) => socket.write(text, resolve))),
    );

    for (let id = 1; id <= 20; id++) {
      expect((await service.post(`{"id":${id},"name":"Fern"}`)).status).toBe(200);
    }
    expect(strangers.filter((socket) => !socket.closed).length).toBeGreaterThan(count / 2);
    for (const socket of strangers) socket.destroy();
    expect(await service.end()).toEqual({ code: 0, signal: null });
  },
);

describe.each(stores)('to move into %s and out again', (_name, start) => {
  it.each([
    [160, 200_000, 'Fern'],
    [320, 300, 'x'.repeat(MIB - 64)],
  ])('a memory of %d MiB is enough for %d plants', async (limit, count, name) => {
    memory = SmallMemory.make(limit * MIB);
    const store = await start();
    const lines = Array.from({ length: count }, (_, id) => `{"id":${id},"name":"${name}"}\n`).join(
      '',
    );
    const runCommand = (command: string, input = '') =>
      plantStore([command], { DATABASE_URL: store.url }, { wrapper: memory.wrapper, input });

    expect(await runCommand('import', lines)).toMatchObject({ code: 0 });
    expect((await runCommand('export')).stdout === lines).toBe(true);
    await store.remove();
  });
});
