import { once } from 'node:events';
import type { Socket } from 'node:net';
import { JSON_HEADERS } from '../support/application';
import { useServiceHome } from '../support/service-process';
import { SmallMemory } from '../support/small-memory';
import { open } from '../support/wire';

const MIB = 2 ** 20;

const home = useServiceHome();
let memory: SmallMemory;
let strangers: Socket[] = [];
afterEach(async () => {
  for (const socket of strangers) socket.destroy();
  await home.close();
  await memory.remove();
});

const REFUSED = 'PUT /nothing HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n';

it.each([
  [1163, '15,900 fields', `POST /plants HTTP/1.1\r\nHost: x\r\n${'a:\r\n'.repeat(15_900)}`],
  [2000, 'a field of 15.9 kB', `POST /plants HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(15_900)}`],
  [1000, 'trailers of 15,900 fields', REFUSED + 'a:\r\n'.repeat(15_900)],
])(
  'a memory of 320 MiB is enough for creations beside %d strangers who send %s without the end',
  async (count, _what, text) => {
    memory = SmallMemory.make(320 * MIB);
    const service = await home.start(
      { HEADERS_TIMEOUT: '30s', REQUEST_TIMEOUT: '60s' },
      memory.wrapper,
    );
    const url = await service.url();

    strangers = Array.from({ length: count }, () => open(url).on('error', () => undefined));
    await Promise.all(strangers.map((socket) => once(socket, 'connect')));
    await Promise.all(
      strangers.map((socket) => new Promise((resolve) => socket.write(text, resolve))),
    );

    for (let id = 1; id <= 20; id++) {
      const response = await fetch(new URL('/plants', url), {
        method: 'POST',
        headers: JSON_HEADERS,
        body: `{"id":${id},"name":"Fern"}`,
      });
      expect(response.status).toBe(200);
    }
    expect(strangers.filter((socket) => !socket.closed).length).toBeGreaterThan(count / 2);
    expect(await service.end()).toEqual({ code: 0, signal: null });
  },
);
