import { spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder, removeFolder } from './folder';

const ADDRESS = '127.0.0.77';

/** Runs a program in a mount namespace of its own, with another /etc/resolv.conf. */
const wrapperOf = (file: string): [program: string, ...args: string[]] => {
  const script = 'mount --bind "$0" /etc/resolv.conf && exec "$@"';
  return ['unshare', '-rm', 'sh', '-c', script, file];
};

/** Whether this machine has Linux' user namespaces, and lets the tests use port 53. */
function isPossible(): boolean {
  const [program, ...args] = wrapperOf('/dev/null');
  return process.getuid?.() === 0 && spawnSync(program, [...args, 'true']).status === 0;
}

/**
 * Tests of processes whose resolver never responds. Where the machine lacks what that needs they are
 * skipped, under a name that says so.
 *
 * @param tests get a function that returns the wrapper of such a process
 */
export function describeWithResolver(name: string, tests: (wrapper: () => string[]) => void): void {
  if (!isPossible()) {
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
      writeFileSync(file, `nameserver ${ADDRESS}\noptions timeout:30 attempts:5\n`);
      resolver.bind(53, ADDRESS);
      await once(resolver, 'listening');
    });
    afterAll(() => {
      resolver.close();
      removeFolder(folder);
    });
    tests(() => wrapperOf(file));
  });
}
