import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** The range of ports that operating systems do not assign by themselves. */
const MIN_PORT = 10_000;
/** Exclusive. */
const MAX_PORT = 32_768;

/**
 * Returns an unused port of 127.0.0.1, for a program that cannot choose one itself. The operating system does
 * not assign such a port to a connection before the program starts.
 */
export async function findFreePort(): Promise<number> {
  for (;;) {
    const port = randomInt(MIN_PORT, MAX_PORT);
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer().listen(port, '127.0.0.1');
  try {
    await once(probe, 'listening');
  } catch {
    return false;
  }
  probe.close();
  await once(probe, 'close');
  return true;
}
