import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { useServiceHome } from '../support/service-process';
import { openConnection, readResponses } from '../support/wire';

const CONNECTIONS = 2000;
const MAX_RESIDENT_KIB = 400 * 1024;

/** Node.js handles everything that it has received in one segment, so the memory grows with the requests in it. */
const REQUESTS = 'POST /plants HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n'.repeat(100);

const home = useServiceHome();
let sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets) socket.destroy();
});

it(`the service needs at most 400 MiB for ${CONNECTIONS} clients without a token that pipeline requests and never read`, async () => {
  const service = await home.start();
  const url = await service.url();
  sockets = Array.from({ length: CONNECTIONS }, () =>
    openConnection(url)
      .pause()
      .on('error', () => undefined),
  );
  // A new connection would have to wait until the service accepts it.
  const last = openConnection(url);
  sockets.push(last);
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));

  for (const socket of sockets.slice(0, -1)) socket.write(REQUESTS);
  // The service handles this request after what it has received so far.
  last.write('GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  expect(await readResponses(last)).toMatchObject([{ status: 200 }]);

  const [, peak] =
    /^VmHWM:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${service.pid}/status`, 'utf8')) ?? [];
  expect(Number(peak)).toBeLessThan(MAX_RESIDENT_KIB);
  expect((await service.post('{"id":1,"name":"Fern"}')).status).toBe(200);
});
