/** Measures the memory that clients without a token can take. Needs Linux. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { useServiceHome } from '../support/service-process';
import { openConnection } from '../support/wire';

const MAX_RESIDENT_KIB = 450 * 1024;

/** A write that takes longer does not fit. */
const STUCK_MS = 2000;

const REQUESTS = 'GET /x HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(2000);

const home = useServiceHome();
let sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets) socket.destroy();
});

it.each([50, 200, 2000])(
  'the service needs at most 450 MiB for %d clients without a token that pipeline requests and never read',
  async (count) => {
    const service = await home.start();
    const url = await service.url();
    const open = () => openConnection(url).pause();
    sockets = Array.from({ length: count }, () => open().on('error', () => undefined));
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));

    await Promise.all(sockets.map(writeUntilFull));
    expect(await service.getStatus('/health/live')).toBe(200);

    const [, peak] =
      /^VmHWM:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${service.pid}/status`, 'utf8')) ?? [];
    expect(Number(peak)).toBeLessThan(MAX_RESIDENT_KIB);
    expect((await service.post('{"id":1,"name":"Fern"}')).status).toBe(200);
  },
);

/** Writes requests until the service ends the connection, or nothing more fits. */
async function writeUntilFull(socket: Socket): Promise<void> {
  let isStuck = false;
  while (!isStuck && !socket.destroyed) {
    const written = new Promise((resolve) =>
      socket.once('close', resolve).write(REQUESTS, resolve),
    );
    const stuck = setTimeout(STUCK_MS, true, { ref: false });
    isStuck = (await Promise.race([written, stuck])) === true;
    socket.removeAllListeners('close');
  }
}
