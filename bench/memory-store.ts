import { setFlagsFromString } from 'node:v8';
import { Test } from '@nestjs/testing';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { equip } from '../src/application';
import { AppModule } from '../src/app.module';
import { readEnvironment } from '../src/config/environment';
import { type Admission, createFastifyAdapter } from '../src/server';
import { createLogger } from '../src/operations/logging/logger';
import { PlantsRepository } from '../src/plants';

/** Our service over a store that forgets: the pipeline alone, everything but the commit. */
async function main(): Promise<void> {
  // As the program's own start does.
  setFlagsFromString('--no-allocation-site-pretenuring');
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
  const program: { admission?: Admission } = {};
  const app = module.createNestApplication<NestFastifyApplication>(
    createFastifyAdapter(settings, () => program.admission),
    { bodyParser: false, logger: false },
  );
  program.admission = equip(app, settings, createLogger(settings.logLevel));
  await app.listen(settings.port, settings.host);
}

void main();
