import { makeFolder, removeFolder } from '../../support/folder';
import { readPlants } from '../../support/sqlite';
import { storedIds } from './contract-cases';
import {
  answerCases,
  answerOwn,
  Host,
  type HostKind,
  installHost,
  type Installation,
  packPackage,
} from './hosts';

type Options = Parameters<typeof Host.start>[2];

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

  const homeOf = ({ nest }: HostKind): string => installations.get(nest)?.home ?? '';

  it('add at most 10 MB and 3 packages by it', () => {
    for (const { packages, kib } of installations.values()) {
      expect(packages).toBeLessThanOrEqual(3);
      expect(kib).toBeLessThanOrEqual(10 * 1024);
    }
  });

  // Neither is installed: no host has asked for them yet.
  it('end with a sentence that names the package to install for PostgreSQL or an issuer', async () => {
    const auth = { issuer: 'https://issuer.example.org', audience: 'plants' };
    const driver = 'The PostgreSQL driver is not installed. Run: npm install pg';
    for (const kind of kinds) {
      const start = (options: Options) => Host.start(homeOf(kind), kind, options);

      await expect(start({ postgres: 'postgres://127.0.0.1/plants' })).rejects.toThrow(driver);
      await expect(start({ auth })).rejects.toThrow(
        'An issuer of JWTs needs a library: npm install jose',
      );
    }
  }, 240_000);

  describe.each(kinds.map((kind) => ({ ...kind, version: kind.node ?? process.versions.node })))(
    'a host on Nest $nest, $platform, $modules, Node.js $version',
    (kind) => {
      let alone: Host;
      let host: Host;
      beforeAll(async () => {
        const start = (options?: Options) => Host.start(homeOf(kind), kind, options);
        [alone, host] = await Promise.all([start(), start({ auth: { tokens: ['host-token'] } })]);
      }, 120_000);
      afterAll(() => Promise.all([alone.stop(), host.stop()]));

      it("answers as the contract says at the module's route", async () => {
        const { actual, expected } = await answerCases(host, (data) => ({ data }));

        expect(actual).toEqual(expected);
        expect(expected.length).toBeGreaterThan(80);
        expect(readPlants(host.database).map(({ id }) => id)).toEqual(storedIds);
        // What Node.js 22 says of its SQLite.
        const lines = host.output
          .split('\n')
          .filter((line) => !/ExperimentalW|--trace-w/.test(line));
        expect(lines).toEqual(['']);
      }, 120_000);

      it('refuses with the Error body what its global guard refuses', async () => {
        const answer = await host.send('POST', '/api/v1/plants', { 'x-robot': 'yes' }, '{}');

        expect(answer.status).toBe(403);
        expect(JSON.parse(answer.body)).toMatchObject({ error: 40300 });
      });

      it('answers at its own routes as without the module', async () => {
        const expected = await answerOwn(alone);

        expect(await answerOwn(host)).toEqual(expected);
        expect(new Set(expected.map(({ status }) => status)).size).toBeGreaterThan(4);
      }, 60_000);
    },
  );
}
