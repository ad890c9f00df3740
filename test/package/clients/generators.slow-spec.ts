import type { TestApplication } from '../../support/application';
import { ClientProject, example, startForClients } from '../../support/client-project';

/** What docs/clients.md says of generators, which are no part of the project: so not in npm test. */

jest.setTimeout(300_000);

/** Programs that use what the generators make, as it comes. Each prints the answer. */
const AS_IT_COMES = {
  'hey-api.ts': `import { client } from './hey-api/client.gen.js';
    import { createPlant } from './hey-api/index.js';
    client.setConfig({ baseUrl: process.env.PLANT_STORE, auth: process.env.TOKEN });
    console.log(await createPlant({ body: { id: 9007199254741003, name: 'Fern' } }));`,
  'hey-api-transformers.ts': `import { client } from './plant-store/client.gen.js';
    import { createPlant } from './plant-store/index.js';
    client.setConfig({ baseUrl: process.env.PLANT_STORE, auth: process.env.TOKEN });
    console.log(await createPlant({ body: { id: 9007199254741003n, name: 'Fern' } }));`,
  'openapi-typescript.ts': `import createClient from 'openapi-fetch';
    import type { paths } from './schema-as-it-comes.js';
    const client = createClient<paths>({
      baseUrl: process.env.PLANT_STORE,
      headers: { Authorization: 'Bearer ' + process.env.TOKEN },
    });
    const body = { id: 9007199254741003, name: 'Fern' };
    console.log(await client.POST('/plants', { body }));`,
  'oazapfts-number.ts': `import { createPlant, defaults } from './oazapfts-as-it-comes.js';
    defaults.baseUrl = String(process.env.PLANT_STORE);
    defaults.headers = { Authorization: 'Bearer ' + process.env.TOKEN };
    console.log(await createPlant({ id: 9007199254741003, name: 'Fern' }));`,
};

describe('docs/clients.md says what generators make of an int64:', () => {
  let application: TestApplication;
  /** With a client of each generator, and every program that uses one. */
  let project: ClientProject;
  let env: NodeJS.ProcessEnv;
  beforeAll(async () => {
    ({ application, env } = await startForClients());
    project = new ClientProject(AS_IT_COMES, env);
    const commands = [
      example('Generated', 'sh'),
      'npx openapi-ts -i "$PLANT_STORE/openapi.json" -o src/hey-api -p @hey-api/client-fetch @hey-api/sdk',
      'npx openapi-typescript "$PLANT_STORE/openapi.json" -o src/schema-as-it-comes.ts',
      'npx oazapfts "$PLANT_STORE/openapi.json" src/oazapfts-as-it-comes.ts',
    ];
    await Promise.all(commands.map((command) => project.generate(command)));
    const { code, stdout } = await project.compile();
    if (code !== 0) throw new Error(stdout);
  });
  beforeEach(() => {
    application.store.removePlants();
  });
  afterAll(async () => {
    await application.stop();
    project.remove();
  });

  const plantsAfter = async (program: string): Promise<bigint[]> => {
    await project.run(program, env);
    return application.store.plants().map(({ id }) => id);
  };

  it.each(['hey-api.js', 'openapi-typescript.js', 'oazapfts-number.js'])(
    'another id is stored by %s',
    async (program) => {
      expect(await plantsAfter(program)).toEqual([9_007_199_254_741_004n]);
    },
  );

  it('a string is sent by hey-api with transformers', async () => {
    const { stdout } = await project.run('hey-api-transformers.js', env);

    expect(stdout).toContain('40002');
    expect(application.store.plants()).toEqual([]);
  });
});
