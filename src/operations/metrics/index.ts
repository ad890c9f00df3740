export { Metrics } from './metrics';
export { MetricsController } from './metrics.controller';
