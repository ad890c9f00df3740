import { spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder, removeFolder } from './folder';

const RESOLVER_ADDRESS = '127.0.0.77';

/** Returns a wrapper that runs a program in a new mount namespace, with this file as /etc/resolv.conf. */
const createWrapper = (file: string): [program: string, ...args: string[]] => {
  const script = 'mount --bind "$0" /etc/resolv.conf && exec "$@"';
  return ['unshare', '-rm', 'sh', '-c', script, file];
};

/** Whether this machine has user namespaces of Linux, and lets the tests use port 53. */
function isSupported(): boolean {
  const [program, ...args] = createWrapper('/dev/null');
  return process.getuid?.() === 0 && spawnSync(program, [...args, 'true']).status === 0;
}

/**
 * Describes tests of processes whose DNS resolver never responds. If the machine does not support this, skips
 * them and says so in the name.
 *
 * @param tests called with a function that returns the wrapper for such a process
 */
export function describeWithUnresponsiveResolver(
  name: string,
  tests: (wrapper: () => string[]) => void,
): void {
  if (!isSupported()) {
    describe.skip(`${name}, which needs root and user namespaces`, () => {
      tests(() => []);
    });
    return;
  }
  describe(name, () => {
    const resolver = createSocket('udp4');
    let folder: string;
    let file: string;
    beforeAll(async () => {
      folder = makeFolder();
      file = join(folder, 'resolv.conf');
      writeFileSync(file, `nameserver ${RESOLVER_ADDRESS}\noptions timeout:30 attempts:5\n`);
      resolver.bind(53, RESOLVER_ADDRESS);
      await once(resolver, 'listening');
    });
    afterAll(() => {
      resolver.close();
      removeFolder(folder);
    });
    tests(() => createWrapper(file));
  });
}
