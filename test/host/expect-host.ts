import { makeFolder, removeFolder } from '../support/folder';
import {
  answerCases,
  answerOwn,
  Host,
  type HostKind,
  installHost,
  type Installation,
  packPackage,
  withTokens,
} from './hosts';

/** Declares the tests of hosts: the same for each. */
export function testHosts(kinds: readonly HostKind[]): void {
  let folder: string;
  let tarball: string;
  const installations = new Map<HostKind['nest'], Installation>();
  beforeAll(() => {
    folder = makeFolder();
    tarball = packPackage(folder);
    for (const nest of new Set(kinds.map((kind) => kind.nest))) {
      installations.set(nest, installHost(folder, `nest${nest}`, tarball));
    }
  }, 240_000);
  afterAll(() => {
    removeFolder(folder);
  });

  it('add at most 10 MB and 10 packages by it', () => {
    for (const { packages, kib } of installations.values()) {
      expect(packages).toBeLessThanOrEqual(10);
      expect(kib).toBeLessThanOrEqual(10 * 1024);
    }
  });

  // Neither is installed: no host has asked for them yet.
  it.each([
    [
      'PostgreSQL',
      { postgres: 'postgres://127.0.0.1/plants' },
      'The PostgreSQL driver is not installed. Run: npm install pg',
    ],
    [
      'an issuer',
      { auth: { issuer: 'https://issuer.example.org', audience: 'plants' } },
      'An issuer of JWTs needs a library: npm install jose',
    ],
  ])(
    'end with a sentence that names the package to install for %s',
    async (_what, options, sentence) => {
      for (const kind of kinds) {
        const home = installations.get(kind.nest)?.home ?? '';

        await expect(Host.start(home, kind, options)).rejects.toThrow(sentence);
      }
    },
    120_000,
  );

  describe.each(kinds.map((kind) => ({ ...kind, version: kind.node ?? process.versions.node })))(
    'a host on Nest $nest, $platform, $modules, Node.js $version',
    (kind) => {
      let alone: Host;
      let host: Host;
      beforeAll(async () => {
        const home = installations.get(kind.nest)?.home ?? '';
        [alone, host] = await Promise.all([
          Host.start(home, kind),
          Host.start(home, kind, withTokens),
        ]);
      }, 120_000);
      afterAll(() => Promise.all([alone.stop(), host.stop()]));

      it("answers as the contract says at the module's route", async () => {
        const { actual, expected } = await answerCases(host);

        expect(actual).toEqual(expected);
        expect(expected.length).toBeGreaterThan(80);
        // What Node.js 22 says of its SQLite.
        const lines = host.output
          .split('\n')
          .filter((line) => !/ExperimentalW|--trace-w/.test(line));
        expect(lines).toEqual(['']);
      }, 120_000);

      it('answers at its own routes as without the module', async () => {
        const expected = await answerOwn(alone);

        expect(await answerOwn(host)).toEqual(expected);
        expect(new Set(expected.map(({ status }) => status)).size).toBeGreaterThan(4);
      }, 60_000);
    },
  );
}
