import { Test } from '@nestjs/testing';
import { AppModule } from '../src/app.module';
import { readEnvironment } from '../src/config/environment';
import { createFastifyAdapter } from '../src/http/fastify-adapter';
import { PlantsRepository } from '../src/plants';

/** Our service over a store that forgets: the pipeline alone, everything but the commit. */
async function main(): Promise<void> {
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

void main();
