import { Controller, Get, Header } from '@nestjs/common';
import { Registry } from '@prometheus-io/client';
import { RequiredScope } from '../../plants/auth/bearer.guard';
import { SkipAdmission } from '../guards/load-shedding.guard';
import { Metrics } from './metrics';

/** `GET /metrics`, in the Prometheus text format 0.0.4. It has its own scope. */
@Controller('metrics')
@SkipAdmission(true)
export class MetricsController {
  constructor(private readonly metrics: Metrics) {}

  @Get()
  @RequiredScope('metrics')
  @Header('Content-Type', Registry.PROMETHEUS_CONTENT_TYPE)
  read(): Promise<string> {
    return this.metrics.registry.metrics();
  }
}
