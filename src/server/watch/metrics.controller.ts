import { Controller, Get, Header } from '@nestjs/common';
import { Registry } from '@prometheus-io/client';
import { RequiredScope } from '../../plants/auth/bearer.guard';
import { Metrics } from './metrics';

/** `GET /metrics`, behind the bearer guard like every route of Nest, with a scope of its own: text of version 0.0.4. */
@Controller('metrics')
export class MetricsController {
  constructor(private readonly metrics: Metrics) {}

  @Get()
  @RequiredScope('metrics')
  @Header('Content-Type', Registry.PROMETHEUS_CONTENT_TYPE)
  read(): Promise<string> {
    return this.metrics.registry.metrics();
  }
}
