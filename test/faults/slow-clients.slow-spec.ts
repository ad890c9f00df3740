/** Shows that time-outs end slow clients. Takes minutes, because Node.js looks for some of them rarely. */
import type { Socket } from 'node:net';
import { createRequest, Load } from '../support/load';
import { readMetric } from '../support/metrics';
import { useServiceHome } from '../support/service-process';
import { until } from '../support/until';
import { openConnection } from '../support/wire';

/** Node.js disconnects a client that reads nothing after one or two times REQUEST_TIMEOUT + 30 seconds. */
const DISCONNECT_LIMIT_MS = 150_000;

/** The pause of a slow sender after each byte. */
const BYTE_INTERVAL_MS = 250;

const home = useServiceHome();
let readers: Socket[] = [];
afterEach(() => {
  for (const socket of readers) socket.destroy();
});

it('the service disconnects 1,000 slow clients by its timeouts, and serves others at the same time', async () => {
  const service = await home.start({ HEADERS_TIMEOUT: '2s', REQUEST_TIMEOUT: '4s' });
  const url = await service.url();
  const [headers = '', body = ''] = createRequest(1).text.split(/(?={)/);
  const bundle = 'GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: x\r\n\r\n';

  // They request more than all buffers between them and the service can hold, and read nothing.
  readers = Array.from({ length: 300 }, () => openConnection(url).pause());
  for (const socket of readers) socket.on('error', () => undefined).write(bundle.repeat(3));
  const slow = [
    ...Array.from({ length: 400 }, () => trickle(openConnection(url), '', headers + body)),
    ...Array.from({ length: 300 }, () => trickle(openConnection(url), headers, body)),
  ];
  // A client that does not read does not notice that it was disconnected. So ask the service.
  const areDisconnected = async () => (await readMetric(url, 'http_open_connections')) < 100;
  let isOver = false;
  const disconnected = Promise.all([until(areDisconnected, DISCONNECT_LIMIT_MS), ...slow]).finally(
    () => {
      isOver = true;
    },
  );
  let id = 1000;
  const next = () => (isOver ? undefined : createRequest(++id));
  const { counts } = await Load.run({ urls: [url], connections: 16, next });
  await disconnected;

  expect(counts).toEqual({ 200: expect.any(Number) as number });
  expect(counts[200]).toBeGreaterThan(100);
  expect(await service.end()).toEqual({ code: 0, signal: null });
});

/** Sends one string at once and another one byte by byte. Resolves when the service disconnects. */
async function trickle(socket: Socket, atOnce: string, slowly: string): Promise<void> {
  let sent = 0;
  socket.write(atOnce);
  const sending = setInterval(
    () => socket.write(slowly[sent++ % slowly.length] ?? ''),
    BYTE_INTERVAL_MS,
  );
  socket.resume().on('error', () => undefined);
  await new Promise((resolve) => socket.once('close', resolve));
  clearInterval(sending);
}
