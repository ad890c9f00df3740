/**
 * Shows that clients without a token need less memory than the manifests allow, even if they hold all connections, and
 * that probes succeed once the service has handled what was sent. Needs Linux and a minute. If it may make cgroups, the
 * kernel enforces the limit.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { SETTINGS } from '../../src/server/settings/variables';
import { limitMemory, MEMORY_LIMIT_MIB } from '../support/memory-limit';
import { readMetric } from '../support/metrics';
import { useServiceHome } from '../support/service-process';
import { until } from '../support/until';
import { openConnection } from '../support/wire';

/** The default of MAX_CONNECTIONS. */
const CONNECTIONS = Number(SETTINGS.maxConnections.fallback);

/** A write that takes longer does not fit. */
const STUCK_MS = 2000;

/** How many probes must succeed. */
const PROBES = 20;
const PROBE_INTERVAL_MS = 100;

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
const HALF_HEADERS = `GET / HTTP/1.1\r\nX: ${'x'.repeat(15_000)}`;
const HALF_BODY = `POST /plants HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n${'x'.repeat(30_000)}`;

const home = useServiceHome();
const limit = limitMemory();
let sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets) socket.destroy();
});
afterAll(() => {
  limit.remove();
});

interface Service {
  readonly url: URL;
  /** The address of HEALTH_PORT. */
  readonly health: URL;
  readonly pid: number;
}

async function start(): Promise<Service> {
  const service = await home.start({ HEALTH_PORT: '0', ...limit.environment }, limit.wrapper);
  const [, health = ''] = await service.waitForOutput(/also on (http:[^"\s]+)/);
  return { url: await service.url(), health: new URL(health), pid: service.pid };
}

async function connectAll({ url }: Service, count: number): Promise<void> {
  sockets = Array.from({ length: count }, () => openConnection(url).pause());
  for (const socket of sockets) socket.on('error', () => undefined);
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
}

async function isReady({ health }: Service): Promise<boolean> {
  return (await fetch(new URL('/health/ready', health))).ok;
}

/** Waits until the service has handled what was written to it, and checks that its probes succeed from then on. */
async function expectReady(service: Service): Promise<void> {
  await until(() => isReady(service));
  for (let count = 0; count < PROBES; count++) {
    expect(await isReady(service)).toBe(true);
    await setTimeout(PROBE_INTERVAL_MS);
  }
}

describe('the service within the memory limit of the manifests', () => {
  it.each([
    ['are idle', ''],
    ['send half of the headers', HALF_HEADERS],
    ['send half of a body', HALF_BODY],
    ['do not read a file of Swagger UI', get('/docs/swagger-ui-bundle.js')],
  ])('holds MAX_CONNECTIONS connections that %s', async (_kind, sent) => {
    const service = await start();

    await connectAll(service, CONNECTIONS);
    await Promise.all(sockets.map(writeOnce(sent)));
    await until(
      async () => (await readMetric(service.health, 'http_open_connections')) === CONNECTIONS,
    );
    await expectReady(service);

    expect(readPeakMib(service.pid)).toBeLessThan(MEMORY_LIMIT_MIB);
  });

  it.each([
    ['60 requests', CONNECTIONS, writeOnce(get('/x').repeat(60))],
    ['requests without end on 50 connections', 50, writeUntilFull(get('/x').repeat(2000))],
    ['requests without end', CONNECTIONS, writeUntilFull(get('/x').repeat(2000))],
  ])('survives clients that pipeline %s and never read', async (_kind, count, write) => {
    const service = await start();
    await connectAll(service, count);

    await Promise.all(sockets.map(write));
    await expectReady(service);

    expect(readPeakMib(service.pid)).toBeLessThan(MEMORY_LIMIT_MIB);
  });
});

type Write = (socket: Socket) => Promise<void>;

function writeOnce(sent: string): Write {
  return async (socket) => {
    const written = new Promise((resolve) => socket.once('close', resolve).write(sent, resolve));
    await Promise.race([written, setTimeout(STUCK_MS, undefined, { ref: false })]);
  };
}

/** Writes to a connection again and again, until the service ends it, or nothing more fits. */
function writeUntilFull(sent: string): Write {
  return async (socket) => {
    let isStuck = false;
    while (!isStuck && !socket.destroyed) {
      const written = new Promise((resolve) => socket.once('close', resolve).write(sent, resolve));
      const stuck = setTimeout(STUCK_MS, true, { ref: false });
      isStuck = (await Promise.race([written, stuck])) === true;
      socket.removeAllListeners('close');
    }
  };
}

/** Returns the most resident memory that a process has had so far, in MiB. */
function readPeakMib(pid: number): number {
  const [, peak] = /^VmHWM:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(peak) / 1024;
}
