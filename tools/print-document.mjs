/** Prints the OpenAPI document of the built service, for `npm run openapi`. Uses preview mode, which opens no store. */
import process from 'node:process';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { AppModule } from '../dist/app.module.js';
import { createDocument } from '../dist/server/openapi/document.js';
import { readEnvironment } from '../dist/server/settings/environment.js';

const options = { preview: true, logger: false };
const app = await NestFactory.create(
  AppModule.register(readEnvironment({})),
  new FastifyAdapter(),
  options,
);
process.stdout.write(`${JSON.stringify(createDocument(app), null, 2)}\n`);
