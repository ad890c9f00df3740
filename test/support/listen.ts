import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';

/** Makes a server listen on a free port of the loopback interface. Returns its URL. */
export async function listen(server: Server): Promise<URL> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
}
