import { Test } from '@nestjs/testing';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { equip } from '../src/application';
import { AppModule } from '../src/app.module';
import { readEnvironment } from '../src/config/environment';
import { createFastifyAdapter } from '../src/server/fastify-adapter';
import { createLogger } from '../src/operations/logging/logger';
import { PlantsRepository } from '../src/plants';
import { limitYoungGeneration, tuneV8 } from '../src/v8';

/** Our service over a store that forgets: the pipeline alone, everything but the commit. */
async function main(): Promise<void> {
  tuneV8();
  const settings = readEnvironment(process.env);
  const module = await Test.createTestingModule({ imports: [AppModule.register(settings)] })
    .overrideProvider(PlantsRepository)
    .useValue({
      insert: () => Promise.resolve(true),
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
  limitYoungGeneration(app.getHttpServer());
  await app.listen(settings.port, settings.host);
}

void main();
