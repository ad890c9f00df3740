import { Controller, Get } from '@nestjs/common';
import {
  HealthCheck,
  type HealthCheckResult,
  HealthCheckService,
  HealthIndicatorService,
} from '@nestjs/terminus';
import { PlantsRepository } from '../../../src/plants';

@Controller('health')
export class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly indicators: HealthIndicatorService,
    private readonly plants: PlantsRepository,
  ) {}

  @Get()
  @HealthCheck()
  check(): Promise<HealthCheckResult> {
    const indicator = this.indicators.check('plants');
    return this.health.check([() => (this.plants.isReady() ? indicator.up() : indicator.down())]);
  }
}
