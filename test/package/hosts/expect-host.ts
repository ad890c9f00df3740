import { join } from 'node:path';
import type { ErrorBody, PlantsModuleOptions } from '../../../src/plants';
import { errorBodies } from '../../support/error-bodies';
import { makeFolder } from '../../support/folder';
import { readPlants } from '../../support/sqlite';
import { usePackages } from '../packed';
import { dependenciesOf, Host, type HostKind, installHost } from './hosts';
import { contractCases, otherTargets, treeCases } from './requests';

const JSON_TYPE = { 'content-type': 'application/json' };

/** Declares the tests of hosts: the same for each. */
export function testHosts(kinds: readonly HostKind[]): void {
  const packed = usePackages();
  let additions: ReturnType<typeof installHost>[];
  beforeAll(() => {
    const dependencies = new Set(kinds.map(dependenciesOf));
    additions = [...dependencies].map((each) => installHost(each, packed));
  });

  it('add at most 10 MB and 3 packages by it', () => {
    for (const { packages, kib } of additions) {
      expect(packages).toBeLessThanOrEqual(3);
      expect(kib).toBeLessThanOrEqual(10 * 1024);
    }
  });

  describe.each(kinds.map((kind) => ({ ...kind, version: kind.node ?? process.versions.node })))(
    'a host on Nest $nest, $platform, $build, Node.js $version',
    (kind) => {
      const start = (options?: PlantsModuleOptions) => Host.start(packed.folder, kind, options);
      let alone: Host;
      let host: Host;
      let file: string;
      beforeAll(async () => {
        file = join(makeFolder(packed.folder), 'plants.db');
        alone = await start();
        host = await start({ sqlite: file, auth: { tokens: ['host-token'] } });
      });
      afterAll(() => Promise.all([alone.end(), host.end()]));

      it("answers as the contract says at the module's route", async () => {
        for (const [body, answer, headers] of contractCases) {
          const all = { authorization: 'Bearer host-token', ...JSON_TYPE, ...headers };
          const sent = { body: String(body).slice(0, 60), headers };
          const { status, body: received } = await host.send('POST /api/v1/plants', all, body);

          const { error } = answer as Partial<ErrorBody>;
          const expected = error ? [Math.floor(error / 100), answer] : [200, { data: answer }];
          expect([sent, status, JSON.parse(received)]).toEqual([sent, ...expected]);
        }

        const ids = [1n, 2n, 3n, 4n, 5n, 6n, 9_007_199_254_740_992n, 9_007_199_254_740_993n];
        expect(readPlants(file).map(({ id }) => id)).toEqual(ids);
        // What Node.js 22 says of its SQLite.
        expect(host.stderr.replaceAll(/^.*(ExperimentalW|--trace-w).*\n/gm, '')).toBe('');
      });

      it('refuses with the Error body what its global guard refuses', async () => {
        const answer = await host.send('POST /api/v1/plants', { 'x-robot': 'yes' }, '{}');

        expect(answer).toMatchObject({ status: 403, body: JSON.stringify(errorBodies.forbidden) });
      });

      it('answers at its own routes as without the module', async () => {
        const answersOf = async (each: Host) => {
          const answers = [];
          for (const [body, headers] of treeCases) {
            answers.push(await each.send('POST /api/v1/trees', { ...JSON_TYPE, ...headers }, body));
          }
          for (const target of otherTargets) answers.push(await each.send(target));
          return answers;
        };
        const expected = await answersOf(alone);

        expect(await answersOf(host)).toEqual(expected);
        expect(new Set(expected.map(({ status }) => status)).size).toBeGreaterThan(4);
      });

      // Neither is installed: no host has asked for them yet.
      it.each<[string, PlantsModuleOptions]>([
        [
          'The PostgreSQL driver is not installed. Run: npm install pg',
          { postgres: 'postgres://127.0.0.1/plants' },
        ],
        [
          'An issuer of JWTs needs a library: npm install jose',
          { auth: { issuer: 'https://issuer.example.org', audience: 'plants' } },
        ],
      ])(
        'ends with a sentence that names the package to install: %s',
        async (sentence, options) => {
          await expect(start(options)).rejects.toThrow(sentence);
        },
      );
    },
  );
}
