import { isTracingEnabled } from './tracing';

const ENDPOINT = 'http://127.0.0.1:4318';

describe('traces', () => {
  it.each([
    { OTEL_EXPORTER_OTLP_ENDPOINT: ENDPOINT },
    { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: ENDPOINT },
    { OTEL_TRACES_EXPORTER: 'otlp' },
    { OTEL_TRACES_EXPORTER: 'console' },
    { OTEL_SDK_DISABLED: 'false', OTEL_EXPORTER_OTLP_ENDPOINT: ENDPOINT },
    { OTEL_SDK_DISABLED: '1', OTEL_EXPORTER_OTLP_ENDPOINT: ENDPOINT },
    { OTEL_TRACES_EXPORTER: ' ', OTEL_EXPORTER_OTLP_ENDPOINT: ENDPOINT },
  ])('are enabled by %p', (environment) => {
    expect(isTracingEnabled(environment)).toBe(true);
  });

  it.each([
    {},
    { OTEL_EXPORTER_OTLP_ENDPOINT: '' },
    { OTEL_SERVICE_NAME: 'garden', OTEL_TRACES_SAMPLER: 'always_on' },
    { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: ENDPOINT },
    { OTEL_TRACES_EXPORTER: 'none', OTEL_EXPORTER_OTLP_ENDPOINT: ENDPOINT },
    { OTEL_TRACES_EXPORTER: 'otlp, none' },
    { OTEL_SDK_DISABLED: 'true', OTEL_EXPORTER_OTLP_ENDPOINT: ENDPOINT },
    { OTEL_SDK_DISABLED: 'True', OTEL_TRACES_EXPORTER: 'otlp' },
  ])('are not enabled by %p', (environment) => {
    expect(isTracingEnabled(environment)).toBe(false);
  });
});
