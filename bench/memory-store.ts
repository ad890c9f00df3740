import { Test } from '@nestjs/testing';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { AppModule, equip } from '../src/app.module';
import { readEnvironment } from '../src/server/settings/environment';
import { createFastifyAdapter } from '../src/server/edge/fastify-adapter';
import { createLogger } from '../src/server/watch/logger';
import { PlantsRepository } from '../src/plants';

/** Our service over a store that forgets: the pipeline alone, everything but the commit. */
async function main(): Promise<void> {
  const settings = readEnvironment(process.env);
  const module = await Test.createTestingModule({ imports: [AppModule.register(settings)] })
    .overrideProvider(PlantsRepository)
    .useValue({
      insert: () => Promise.resolve('created'),
      isReady: () => true,
      isFull: () => false,
      queueLength: () => 0,
    })
    .compile();
  const app = module.createNestApplication<NestFastifyApplication>(createFastifyAdapter(settings), {
    bodyParser: false,
    logger: false,
  });
  equip(app, settings, createLogger(settings.logLevel));
  await app.listen(settings.port, settings.host);
}

void main();
