import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { pino } from 'pino';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { NestLogger } from './nest-logger';

@Controller()
class HealthController {
  @Get()
  check(): string {
    return 'ok';
  }
}

@Module({ controllers: [HealthController] })
class HealthModule {}

describe('NestLogger', () => {
  it("logs Nest's startup steps at level debug, and nothing of the startup at level info", async () => {
    const lines: string[] = [];
    const logger = pino({ level: 'debug' }, { write: (line) => lines.push(line) });

    const app = await NestFactory.create(HealthModule, new FastifyAdapter(), {
      logger: new NestLogger(logger),
    });
    await app.init();
    await app.close();

    const { debug } = pino.levels.values;
    const steps = lines.map((line) => JSON.parse(line) as { level: number; context: string });
    expect(steps.filter(({ level }) => level !== debug)).toEqual([]);
    expect(new Set(steps.map(({ context }) => context))).toEqual(
      new Set([
        'NestFactory',
        'InstanceLoader',
        'RoutesResolver',
        'RouterExplorer',
        'NestApplication',
      ]),
    );
  });
});
