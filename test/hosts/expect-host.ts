import { makeFolder, removeFolder } from '../support/folder';
import { answerCases, answerOwn, Host, type HostKind, installHost, packPackage } from './hosts';

/** Declares the tests of hosts: the same for each. */
export function testHosts(kinds: readonly HostKind[]): void {
  let folder: string;
  let tarball: string;
  const homes = new Map<HostKind['nest'], string>();
  beforeAll(() => {
    folder = makeFolder();
    tarball = packPackage(folder);
    for (const nest of new Set(kinds.map((kind) => kind.nest))) {
      homes.set(nest, installHost(folder, nest, tarball));
    }
  }, 240_000);
  afterAll(() => {
    removeFolder(folder);
  });

  describe.each(kinds)('a host on Nest $nest, $platform, $modules, Node.js $node', (kind) => {
    let alone: Host;
    let host: Host;
    beforeAll(async () => {
      const home = homes.get(kind.nest) ?? '';
      [alone, host] = await Promise.all([
        Host.start(home, kind, false),
        Host.start(home, kind, true),
      ]);
    }, 120_000);
    afterAll(() => Promise.all([alone.stop(), host.stop()]));

    it("answers as the contract says at the module's route", async () => {
      const { actual, expected } = await answerCases(host);

      expect(actual).toEqual(expected);
      expect(expected.length).toBeGreaterThan(80);
      expect(host.output).toBe('');
    }, 120_000);

    it('answers at its own routes as without the module', async () => {
      const expected = await answerOwn(alone);

      expect(await answerOwn(host)).toEqual(expected);
      expect(new Set(expected.map(({ status }) => status)).size).toBeGreaterThan(4);
    }, 60_000);
  });
}
