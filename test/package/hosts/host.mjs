import process from 'node:process';
import * as common from '@nestjs/common';
import * as core from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { PlantsModule } from '@plant-store/nestjs';
import { startHost } from './orchard.cjs';

const platforms = {
  express: () => new ExpressAdapter(),
  fastify: (options) => new FastifyAdapter(options),
};

await startHost({
  common,
  core,
  createAdapter: platforms[process.env.PLATFORM],
  plantStore: { PlantsModule },
});
