import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { plantStore } from '../support/plant-store';
import { useServiceHome } from '../support/service-process';
import { SmallMemory } from '../support/small-memory';
import { stores } from '../support/stores';
import { openConnection } from '../support/wire';

const MIB = 2 ** 20;

/** Timeouts that are long enough to avoid a 408 on a slow machine. */
const LONG_TIMEOUTS = { HEADERS_TIMEOUT: '30s', REQUEST_TIMEOUT: '60s' };

// Keeps the stores on a disk. In /dev/shm, they would count as memory of the process that writes them.
process.env.TEST_MEMORY = tmpdir();

const home = useServiceHome();
let memory: SmallMemory;
// This runs after the home has ended the processes that use the memory.
afterEach(() => memory.remove());

const POST = 'POST /plants HTTP/1.1\r\nHost: x\r\n';
const LARGE = `Content-Length: ${MIB}\r\n\r\n`;

it.each([
  [1000, 'announce a body', POST + LARGE],
  [
    1000,
    'announce a body and have a wrong token',
    `${POST}Authorization: Bearer wrong\r\n${LARGE}`,
  ],
  [1163, 'send 15,900 headers without the end', POST + 'a:\r\n'.repeat(15_900)],
  [2000, 'send a header of 15.9 kB without the end', `${POST}X: ${'x'.repeat(15_900)}`],
])(
  '320 MiB of memory are enough for create requests while %d other clients %s',
  async (count, _what, text) => {
    memory = SmallMemory.create(320 * MIB);
    const service = await home.start(LONG_TIMEOUTS, memory.wrapper);
    const url = await service.url();
    const others = Array.from({ length: count }, () =>
      openConnection(url).on('error', () => undefined),
    );
    await Promise.all(others.map((socket) => once(socket, 'connect')));

    await Promise.all(
      others.map((socket) => new Promise((resolve) => socket.write(text, resolve))),
    );

    for (let id = 1; id <= 20; id++) {
      expect((await service.post(`{"id":${id},"name":"Fern"}`)).status).toBe(200);
    }
    const held = others.filter((socket) => socket.bytesRead > 0 || !socket.closed);
    expect(held.length).toBeGreaterThan(count / 2);
    for (const socket of others) socket.destroy();
    expect(await service.end()).toEqual({ code: 0, signal: null });
  },
);

describe.each(stores)('import into and export from %s', (_name, start) => {
  it.each([
    [160, 200_000, 'Fern'],
    [320, 300, 'x'.repeat(MIB - 64)],
  ])('need no more than %d MiB of memory for %d plants', async (limit, count, name) => {
    memory = SmallMemory.create(limit * MIB);
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
