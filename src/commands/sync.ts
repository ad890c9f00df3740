import { open } from 'node:fs/promises';

/** Makes a file or a directory durable: what it holds survives a crash of the machine. */
export async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
