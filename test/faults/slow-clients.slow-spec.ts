import type { Socket } from 'node:net';
import { creation, putLoad } from '../support/load';
import { readMetric } from '../support/metrics';
import { useServiceHome } from '../support/service-process';
import { until } from '../support/until';
import { open } from '../support/wire';

/** Milliseconds between the bytes of a slow sender. */
const PAUSE = 250;

describe('1,000 slow clients', () => {
  const home = useServiceHome();
  let readers: Socket[] = [];
  afterEach(() => {
    for (const socket of readers) socket.destroy();
  });

  it('are cut by the time-outs, and others are served meanwhile', async () => {
    const service = await home.start({ HEADERS_TIMEOUT: '2s', REQUEST_TIMEOUT: '4s' });
    const url = await service.url();
    const { text } = creation(1);
    const bodyAt = text.indexOf('{');
    const bundle = 'GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: x\r\n\r\n';

    readers = Array.from({ length: 300 }, () => neverRead(open(url), bundle.repeat(3)));
    const slow = [
      ...Array.from({ length: 400 }, () => trickle(open(url), '', text)),
      ...Array.from({ length: 300 }, () =>
        trickle(open(url), text.slice(0, bodyAt), text.slice(bodyAt)),
      ),
    ];
    // A client that does not read does not learn that it was cut: the service is asked.
    const areCut = async () => (await readMetric(url, 'http_open_connections')) < 100;
    let over = false;
    const cut = Promise.all([until(areCut, 30_000), ...slow]).finally(() => (over = true));
    let [id, served, failed] = [1000, 0, 0];
    await putLoad({
      url,
      connections: 16,
      next: () => (over ? undefined : creation(++id)),
      onAnswer: (_id, { status }) => {
        if (status === 200) served++;
        else failed++;
      },
      onLost: () => failed++,
    });
    await cut;

    expect(failed).toBe(0);
    expect(served).toBeGreaterThan(1000);
    expect((await service.end()).code).toBe(0);
  }, 120_000);
});

/** Sends the first text at once and the second byte by byte; resolves once it is cut. */
function trickle(socket: Socket, atOnce: string, slowly: string): Promise<unknown> {
  let sent = 0;
  socket.write(atOnce);
  const sending = setInterval(() => socket.write(slowly[sent++ % slowly.length] ?? ''), PAUSE);
  socket.resume();
  socket.on('error', () => undefined);
  return new Promise((resolve) => socket.once('close', resolve)).finally(() => {
    clearInterval(sending);
  });
}

/** Asks for more than the buffers on the way hold and reads nothing of it. */
function neverRead(socket: Socket, requests: string): Socket {
  socket.on('error', () => undefined);
  socket.pause();
  socket.write(requests);
  return socket;
}
