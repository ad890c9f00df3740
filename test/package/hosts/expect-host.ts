import { join } from 'node:path';
import type { ErrorBody, PlantsModuleOptions } from '../../../src/plants';
import { errorBodies } from '../../support/error-bodies';
import { makeFolder } from '../../support/folder';
import { readPlants } from '../../support/sqlite';
import { usePackages } from '../packed';
import { dependenciesOf, Host, type HostKind, installHost } from './hosts';
import { contractCases, otherTargets, treeCases } from './requests';

const JSON_TYPE = { 'content-type': 'application/json' };

/** Declares the same tests for each host. */
export function testHosts(kinds: readonly HostKind[]): void {
  const packed = usePackages();
  let additions: ReturnType<typeof installHost>[];
  beforeAll(() => {
    const dependencies = new Set(kinds.map(dependenciesOf));
    additions = [...dependencies].map((each) => installHost(each, packed));
  });

  it('the module adds at most 10 MB and 3 packages to a host', () => {
    for (const { packages, kib } of additions) {
      expect(packages).toBeLessThanOrEqual(3);
      expect(kib).toBeLessThanOrEqual(10 * 1024);
    }
  });

  describe.each(kinds.map((kind) => ({ ...kind, version: kind.node ?? process.versions.node })))(
    'a host on Nest $nest, $platform, $build, Node.js $version',
    (kind) => {
      const start = (options?: PlantsModuleOptions, environment?: NodeJS.ProcessEnv) =>
        Host.start(packed.folder, kind, options, environment);
      const AUTHORIZED = { authorization: 'Bearer host-token', ...JSON_TYPE };
      let alone: Host;
      let host: Host;
      let rounding: Host;
      let file: string;
      beforeAll(async () => {
        file = join(makeFolder(packed.folder), 'plants.db');
        const auth = { tokens: ['host-token'] };
        alone = await start();
        host = await start({ sqlite: file, auth }, { RAW_BODY: 'yes' });
        rounding = await start({ sqlite: `${file}2`, auth });
      });
      afterAll(() => Promise.all([alone.end(), host.end(), rounding.end()]));

      it("responds at the module's route as the contract specifies", async () => {
        for (const [body, expectedBody, headers] of contractCases) {
          const all = { ...AUTHORIZED, ...headers };
          const sent = { body: String(body).slice(0, 60), headers };
          const { status, body: received } = await host.send('POST /api/v1/plants', all, body);

          const { error } = expectedBody as Partial<ErrorBody>;
          const expected = error
            ? [Math.floor(error / 100), expectedBody]
            : [200, { data: expectedBody }];
          expect([sent, status, JSON.parse(received)]).toEqual([sent, ...expected]);
        }

        const ids = [1n, 2n, 4n, 5n, 6n, 9_007_199_254_740_992n, 9_007_199_254_740_993n];
        expect(readPlants(file).map(({ id }) => id)).toEqual(ids);
        // Node.js 22 warns that its SQLite is experimental.
        expect(host.stderr.replaceAll(/^.*(ExperimentalW|--trace-w).*\n/gm, '')).toBe('');
      });

      it('rejects an id that its parser may have rounded without rawBody', async () => {
        const [[body] = ['']] = contractCases;

        const response = await rounding.send('POST /api/v1/plants', AUTHORIZED, body);

        expect(response).toMatchObject({
          status: 400,
          body: JSON.stringify(errorBodies.idRounded),
        });
      });

      it('responds to the exceptions of its global guard with its own filter', async () => {
        for (const status of [401, 403, 408, 422, 429, 500, 503]) {
          const headers = { ...AUTHORIZED, 'x-status': String(status) };

          const response = await host.send('POST /api/v1/plants', headers, '{}');

          expect(response).toMatchObject({ status, body: '{"orchard":"of the host"}' });
          expect(response.headers).not.toHaveProperty('www-authenticate');
        }
        const robot = { ...AUTHORIZED, 'x-robot': 'yes' };
        const rejected = await host.send('POST /api/v1/plants', robot, '{}');
        expect(rejected).toMatchObject({ status: 403, body: '{"orchard":"Forbidden resource"}' });
      });

      it('responds at its own routes as it does without the module', async () => {
        const collectResponses = async (each: Host) => {
          const responses = [];
          for (const [body, headers] of treeCases) {
            responses.push(
              await each.send('POST /api/v1/trees', { ...JSON_TYPE, ...headers }, body),
            );
          }
          for (const target of otherTargets) responses.push(await each.send(target));
          return responses;
        };
        const expected = await collectResponses(alone);

        expect(await collectResponses(host)).toEqual(expected);
        expect(new Set(expected.map(({ status }) => status)).size).toBeGreaterThan(4);
      });

      // Hosts do not have the optional packages unless they install them.
      it.each<[string, PlantsModuleOptions]>([
        [
          'The PostgreSQL driver is not installed. Run: npm install pg',
          { postgres: 'postgres://127.0.0.1/plants' },
        ],
        [
          'An issuer of JWTs requires a library. Run: npm install jose',
          { auth: { issuer: 'https://issuer.example.org', audience: 'plants' } },
        ],
      ])(
        'does not start without an optional package, and reports how to install it: %s',
        async (sentence, options) => {
          await expect(start(options)).rejects.toThrow(sentence);
        },
      );
    },
  );
}
