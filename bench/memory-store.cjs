const { createRequire } = require('node:module');
const { join } = require('node:path');

/** Our service over a store that forgets: the pipeline alone, everything but the commit. */
const ours = createRequire(join(__dirname, '../dist/main.js'));
const { Test } = ours('@nestjs/testing');
const { AppModule } = ours('./app.module.js');
const { readEnvironment } = ours('./config/environment.js');
const { createFastifyAdapter } = ours('./http/fastify-adapter.js');
const { PlantsRepository } = ours('./plants/index.js');

async function main() {
  const settings = readEnvironment(process.env);
  const module = await Test.createTestingModule({ imports: [AppModule.register(settings)] })
    .overrideProvider(PlantsRepository)
    .useValue({ insert: () => Promise.resolve(true), isReady: () => true })
    .compile();
  const app = module.createNestApplication(createFastifyAdapter(settings), {
    bodyParser: false,
    logger: false,
  });
  await app.listen(settings.port, settings.host);
}

main();
