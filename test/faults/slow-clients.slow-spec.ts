import type { Socket } from 'node:net';
import { printFigures, quantile } from '../support/figures';
import { makeFolder, removeFolder } from '../support/folder';
import { creation, putLoad } from '../support/load';
import { readMetric, residentMemory } from '../support/metrics';
import { ServiceProcess } from '../support/service-process';
import { until } from '../support/until';
import { open } from '../support/wire';

/** Seconds between the bytes of a slow sender. */
const PAUSE = 0.25;

describe('1,000 slow clients', () => {
  const folder = makeFolder();
  let service: ServiceProcess;
  let readers: Socket[] = [];
  afterAll(() => {
    for (const socket of readers) socket.destroy();
    service.kill('SIGKILL');
    removeFolder(folder);
  });

  it('are cut by the time-outs, and others are served meanwhile', async () => {
    service = await ServiceProcess.start(folder, {
      HEADERS_TIMEOUT: '2s',
      REQUEST_TIMEOUT: '4s',
    });
    const url = await service.url();
    const { text } = creation(1);
    const bodyAt = text.indexOf('{');
    const bundle = 'GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: x\r\n\r\n';

    const start = performance.now();
    readers = Array.from({ length: 300 }, () => neverRead(open(url), bundle.repeat(3)));
    const slow = {
      heads: Array.from({ length: 400 }, () => trickle(open(url), '', text)),
      bodies: Array.from({ length: 300 }, () =>
        trickle(open(url), text.slice(0, bodyAt), text.slice(bodyAt)),
      ),
    };
    // A client that does not read does not learn that it was cut: the service is asked.
    const readersCut = until(
      async () => (await readMetric(url, 'http_open_connections')) < 100,
      30_000,
    );
    const secondsOfReaders = readersCut.then(() => (performance.now() - start) / 1000);
    let over = false;
    const cut = Promise.all([secondsOfReaders, ...Object.values(slow).flat()]).finally(() => {
      over = true;
    });
    let id = 1000;
    let failed = 0;
    let memory = 0;
    const latencies: number[] = [];
    const watch = setInterval(() => {
      void residentMemory(url).then(
        (now) => (memory = Math.max(memory, now)),
        () => undefined,
      );
    }, 1000);
    await putLoad({
      url,
      connections: 16,
      next: () => (over ? undefined : creation(++id)),
      onAnswer: (_id, { status, latency }) => {
        latencies.push(latency);
        if (status !== 200) failed++;
      },
      onLost: () => failed++,
    });
    clearInterval(watch);
    await cut;

    const report = {
      'slow heads cut after (s; limit 2)': range(await Promise.all(slow.heads)),
      'slow bodies cut after (s; limit 4)': range(await Promise.all(slow.bodies)),
      'the last slow reader cut after (s; limit twice 4 + 2 from its last progress)': (
        await secondsOfReaders
      ).toFixed(1),
      'others served meanwhile': latencies.length,
      'others failed': failed,
      'latency of the others, median (ms)': quantile(latencies, 0.5).toFixed(1),
      'latency of the others, 99% (ms)': quantile(latencies, 0.99).toFixed(1),
      'most memory (MiB)': memory.toFixed(0),
    };
    printFigures('1,000 slow clients', report);
    expect(failed).toBe(0);
    expect(latencies.length).toBeGreaterThan(1000);
    service.kill('SIGTERM');
    expect((await service.ended).code).toBe(0);
  }, 120_000);
});

/** Sends the first text at once and the second byte by byte; resolves to the seconds until it is cut. */
function trickle(socket: Socket, atOnce: string, slowly: string): Promise<number> {
  let sent = 0;
  socket.write(atOnce);
  const sending = setInterval(
    () => socket.write(slowly[sent++ % slowly.length] ?? ''),
    PAUSE * 1000,
  );
  socket.resume();
  return secondsUntilClosed(socket).finally(() => {
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

function secondsUntilClosed(socket: Socket): Promise<number> {
  const start = performance.now();
  socket.on('error', () => undefined);
  return new Promise((resolve) => {
    socket.once('close', () => {
      resolve((performance.now() - start) / 1000);
    });
  });
}

function range(seconds: number[]): string {
  return `${Math.min(...seconds).toFixed(1)} to ${Math.max(...seconds).toFixed(1)}`;
}
