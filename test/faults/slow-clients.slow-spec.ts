import type { Socket } from 'node:net';
import { creation, Load } from '../support/load';
import { readMetric } from '../support/metrics';
import { useServiceHome } from '../support/service-process';
import { until } from '../support/until';
import { open } from '../support/wire';

/** Milliseconds between the bytes of a slow sender. */
const PAUSE = 250;

const home = useServiceHome();
let readers: Socket[] = [];
afterEach(() => {
  for (const socket of readers) socket.destroy();
});

it('the service disconnects 1,000 slow clients by its timeouts, and serves others at the same time', async () => {
  const service = await home.start({ HEADERS_TIMEOUT: '2s', REQUEST_TIMEOUT: '4s' });
  const url = await service.url();
  const [head = '', body = ''] = creation(1).text.split(/(?={)/);
  const bundle = 'GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: x\r\n\r\n';

  // They ask for more than the buffers on the way hold, and read nothing of it.
  readers = Array.from({ length: 300 }, () => open(url).pause());
  for (const socket of readers) socket.on('error', () => undefined).write(bundle.repeat(3));
  const slow = [
    ...Array.from({ length: 400 }, () => trickle(open(url), '', head + body)),
    ...Array.from({ length: 300 }, () => trickle(open(url), head, body)),
  ];
  // A client that does not read does not learn that it was cut: the service is asked.
  const areCut = async () => (await readMetric(url, 'http_open_connections')) < 100;
  let isOver = false;
  const cut = Promise.all([until(areCut), ...slow]).finally(() => (isOver = true));
  let id = 1000;
  const next = () => (isOver ? undefined : creation(++id));
  const { counts } = await Load.put({ urls: [url], connections: 16, next });
  await cut;

  expect(counts).toEqual({ 200: expect.any(Number) as number });
  expect(counts[200]).toBeGreaterThan(100);
  expect(await service.end()).toEqual({ code: 0, signal: null });
});

/** Sends the first text at once and the second byte by byte; resolves once it is cut. */
async function trickle(socket: Socket, atOnce: string, slowly: string): Promise<void> {
  let sent = 0;
  socket.write(atOnce);
  const sending = setInterval(() => socket.write(slowly[sent++ % slowly.length] ?? ''), PAUSE);
  socket.resume().on('error', () => undefined);
  await new Promise((resolve) => socket.once('close', resolve));
  clearInterval(sending);
}
