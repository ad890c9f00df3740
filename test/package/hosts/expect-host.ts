import { readPlants } from '../../support/sqlite';
import { usePackages } from '../packed';
import { storedIds } from './contract-cases';
import {
  answerOwn,
  expectContract,
  Host,
  type HostKind,
  installHost,
  type Installation,
} from './hosts';

type Options = Parameters<typeof Host.start>[2];

/** Declares the tests of hosts: the same for each. */
export function testHosts(kinds: readonly HostKind[]): void {
  const packed = usePackages();
  const installations = new Map<HostKind['nest'], Installation>();
  beforeAll(() => {
    for (const nest of new Set(kinds.map((kind) => kind.nest))) {
      installations.set(nest, installHost(`nest${nest}`, packed));
    }
  });

  const start = (kind: HostKind, options?: Options) =>
    Host.start(installations.get(kind.nest)?.home ?? '', kind, options);

  it('add at most 10 MB and 3 packages by it', () => {
    for (const { packages, kib } of installations.values()) {
      expect(packages).toBeLessThanOrEqual(3);
      expect(kib).toBeLessThanOrEqual(10 * 1024);
    }
  });

  // Neither is installed: no host has asked for them yet.
  it('end with a sentence that names the package to install for PostgreSQL or an issuer', async () => {
    const auth = { issuer: 'https://issuer.example.org', audience: 'plants' };
    for (const kind of kinds) {
      await expect(start(kind, { postgres: 'postgres://127.0.0.1/plants' })).rejects.toThrow(
        'The PostgreSQL driver is not installed. Run: npm install pg',
      );
      await expect(start(kind, { auth })).rejects.toThrow(
        'An issuer of JWTs needs a library: npm install jose',
      );
    }
  });

  describe.each(kinds.map((kind) => ({ ...kind, version: kind.node ?? process.versions.node })))(
    'a host on Nest $nest, $platform, $modules, Node.js $version',
    (kind) => {
      let alone: Host;
      let host: Host;
      beforeAll(async () => {
        alone = await start(kind);
        host = await start(kind, { auth: { tokens: ['host-token'] } });
      });
      afterAll(() => Promise.all([alone.end(), host.end()]));

      it("answers as the contract says at the module's route", async () => {
        await expectContract(host, (data) => ({ data }));

        expect(readPlants(host.database).map(({ id }) => id)).toEqual(storedIds);
        // What Node.js 22 says of its SQLite.
        const lines = host.stderr
          .split('\n')
          .filter((line) => !/ExperimentalW|--trace-w/.test(line));
        expect(lines).toEqual(['']);
      });

      it('refuses with the Error body what its global guard refuses', async () => {
        const answer = await host.send('POST', '/api/v1/plants', { 'x-robot': 'yes' }, '{}');

        expect(answer.status).toBe(403);
        expect(JSON.parse(answer.body)).toMatchObject({ error: 40300 });
      });

      it('answers at its own routes as without the module', async () => {
        const expected = await answerOwn(alone);

        expect(await answerOwn(host)).toEqual(expected);
        expect(new Set(expected.map(({ status }) => status)).size).toBeGreaterThan(4);
      });
    },
  );
}
