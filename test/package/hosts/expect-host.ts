import { join } from 'node:path';
import type { ErrorBody, PlantsModuleOptions } from '../../../src/plants';
import type { Headers } from '../../support/application';
import { errorBodies } from '../../support/error-bodies';
import { makeFolder } from '../../support/folder';
import { readPlants } from '../../support/sqlite';
import { usePackages } from '../packed';
import { dependenciesOf, Host, type HostKind, installHost } from './hosts';

const FERN = '{"id":9007199254740993,"name":"Fern"}';
const JSON_TYPE = { 'content-type': 'application/json' };
const TOKEN = 'Bearer host-token';

/** Requests to the route of the module, and the bodies of their responses. `undefined` omits a header, an array repeats it. */
const contractCases: readonly [body: string, expectedBody: object, headers?: Headers][] = [
  [FERN, { name: 'Fern' }, { 'idempotency-key': 'k' }],
  [FERN, { name: 'Fern' }, { 'idempotency-key': '"k"' }],
  [FERN.replace('Fern', 'Moss'), errorBodies.keyReused, { 'idempotency-key': 'k' }],
  [FERN, errorBodies.idTaken],
  ['{"id":1,"name":" 🌿\\t ","tag":"e\u0301"}', { name: ' 🌿\t ', tag: 'e\u0301' }],
  ['{"id":2,"name":"","more":[{"id":1}]}', { name: '' }, { 'transfer-encoding': 'chunked' }],
  ['{"id":9223372036854775808,"name":"Fern"}', errorBodies.idNotInt64],
  [FERN, errorBodies.mediaType, { 'content-type': ['application/json', 'application/json'] }],
  [FERN, errorBodies.missingCredentials, { authorization: undefined }],
  [FERN, errorBodies.malformedCredentials, { authorization: [TOKEN, TOKEN] }],
];

/** Declares the same tests for each host. */
export function testHosts(kinds: readonly HostKind[]): void {
  const packed = usePackages();
  beforeAll(() => {
    for (const each of new Set(kinds.map(dependenciesOf))) installHost(each, packed);
  });

  describe.each(kinds.map((kind) => ({ ...kind, version: kind.node ?? process.versions.node })))(
    'a host on Nest $nest, $platform, $build, Node.js $version',
    (kind) => {
      const start = (options: PlantsModuleOptions, environment?: NodeJS.ProcessEnv) =>
        Host.start(packed.folder, kind, options, environment);
      const AUTHORIZED = { authorization: TOKEN, ...JSON_TYPE };
      let host: Host;
      let rounding: Host;
      let file: string;
      beforeAll(async () => {
        file = join(makeFolder(packed.folder), 'plants.db');
        const auth = { tokens: ['host-token'] };
        host = await start({ sqlite: file, auth }, { RAW_BODY: 'yes' });
        rounding = await start({ sqlite: `${file}2`, auth });
      });
      afterAll(() => Promise.all([host.end(), rounding.end()]));

      it("responds at the module's route as the contract specifies", async () => {
        for (const [body, expectedBody, headers] of contractCases) {
          const all = { ...AUTHORIZED, ...headers };
          const { status, body: received } = await host.send('POST /api/v1/plants', all, body);

          const { error } = expectedBody as Partial<ErrorBody>;
          const expected = error
            ? [Math.floor(error / 100), expectedBody]
            : [200, { data: expectedBody }];
          expect([body, headers, status, JSON.parse(received)]).toEqual([
            body,
            headers,
            ...expected,
          ]);
        }

        expect(readPlants(file).map(({ id }) => id)).toEqual([1n, 2n, 9_007_199_254_740_993n]);
        // Node.js 22 warns that its SQLite is experimental.
        expect(host.stderr.replaceAll(/^.*(ExperimentalW|--trace-w).*\n/gm, '')).toBe('');
      });

      it('rejects an id that its parser may have rounded without rawBody', async () => {
        const response = await rounding.send('POST /api/v1/plants', AUTHORIZED, FERN);

        const body = JSON.stringify(errorBodies.idRounded);
        expect(response).toMatchObject({ status: 400, body });
      });

      it('responds to the exceptions of its global guard with its own filter', async () => {
        const robot = { ...AUTHORIZED, 'x-robot': 'yes' };

        const response = await host.send('POST /api/v1/plants', robot, '{}');

        expect(response).toMatchObject({ status: 403, body: '{"orchard":"Forbidden resource"}' });
      });

      it.each([
        ['{"id":9007199254740993}', 201, '{"data":{"received":{"id":9007199254740992}}}'],
        ['{', 400, expect.stringContaining('orchard') as string],
      ])('parses the body %s of its own route itself', async (sent, status, body) => {
        const response = await host.send('POST /api/v1/trees', JSON_TYPE, sent);

        expect(response).toMatchObject({ status, body });
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
