import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** From where on, and below what, systems leave ports to programs that ask for them by number. */
const FIRST = 10_000;
const END = 32_768;

/**
 * A port of 127.0.0.1 that nobody listens on, for a program that cannot pick its own. It is none that
 * a system gives out by itself: a connection could have it by the time the program starts.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, END);
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
