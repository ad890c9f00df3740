/** Compares the list of blocked ports with what `fetch` of this Node.js does. */
import { findBlockedPort } from './blocked-ports';

/** Whether `fetch` of this Node.js refuses a port before it opens a connection. */
async function isRefused(port: number): Promise<boolean> {
  const dispatcher = {
    dispatch: () => {
      throw new Error('allowed');
    },
  };
  const options = { dispatcher } as unknown as RequestInit;
  const error: unknown = await fetch(`http://127.0.0.1:${port}`, options).catch((e: unknown) => e);
  return ((error as Error).cause as Error).message !== 'allowed';
}

describe('findBlockedPort', () => {
  it('finds the ports to which fetch does not connect', async () => {
    const range = (first: number, last: number) =>
      Array.from({ length: last - first + 1 }, (_, index) => first + index);
    // Most ports of issuers, and all that fetch blocks in November 2026.
    const ports = [range(1, 1100), [1719, 1720, 1723, 2049, 3659, 4045, 4190], range(5000, 5100)];
    ports.push([6000, 6566, 6679, 6697], range(6660, 6670), range(7999, 9100), range(9990, 10_100));

    for (const port of ports.flat()) {
      const found = findBlockedPort(`https://id.example.org:${port}/keys`);
      expect([port, found !== undefined]).toEqual([port, await isRefused(port)]);
    }
  });

  it('ignores a URL without a port', () => {
    expect(findBlockedPort('https://id.example.org')).toBeUndefined();
  });
});
