import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { AppModule } from '../app.module';
import { readEnvironment } from './environment';
import { createDocument } from './document';

/** Prints the OpenAPI document. Preview mode opens no store. */
async function main(): Promise<void> {
  const app = await NestFactory.create(
    AppModule.register(readEnvironment({})),
    new FastifyAdapter(),
    { preview: true, logger: false },
  );
  process.stdout.write(`${JSON.stringify(createDocument(app), null, 2)}\n`);
}

void main();
