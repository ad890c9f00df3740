import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { TestApplication, TOKEN } from '../support/application';
import { Collector } from '../support/collector';
import { ServiceHome, type ServiceProcess } from '../support/service-process';
import { until } from '../support/until';

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const CALLER_ID = 'b7ad6b7169203331';

describe("a service with OpenTelemetry's agent", () => {
  const home = new ServiceHome();
  const collector = new Collector();
  let service: ServiceProcess;
  beforeAll(async () => {
    home.open();
    // As after `npm install` in the folder of the service.
    symlinkSync(join(__dirname, '../node_modules'), join(home.folder, 'node_modules'));
    const url = await collector.start();
    service = await home.start({
      NODE_OPTIONS: '--import @opentelemetry/auto-instrumentations-node/register',
      OTEL_SERVICE_NAME: 'garden',
      OTEL_EXPORTER_OTLP_ENDPOINT: url,
      OTEL_METRICS_EXPORTER: 'none',
      OTEL_LOGS_EXPORTER: 'none',
      OTEL_NODE_ENABLED_INSTRUMENTATIONS: 'http',
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_BSP_SCHEDULE_DELAY: '1',
      ACCESS_LOG: 'true',
    });
  });
  afterAll(async () => {
    await home.close();
    collector.stop();
  });

  it('sends a span of a creation, as a child of that of its caller, with nothing secret', async () => {
    await service.post('{"id":1,"name":"secret"}', {
      'x-request-id': 'abc',
      'idempotency-key': 'secret',
      traceparent: `00-${TRACE_ID}-${CALLER_ID}-01`,
      tracestate: 'garden=1',
    });

    await until(() => collector.requests.length > 0);
    expect(collector.requests).toMatchObject([
      {
        traceId: TRACE_ID,
        parentSpanId: CALLER_ID,
        traceState: 'garden=1',
        name: 'POST',
        attributes: { 'url.path': '/plants', 'http.response.status_code': 200 },
        resource: { 'service.name': 'garden' },
      },
    ]);
    expect(collector.bodies.join()).not.toMatch(new RegExp(`secret|${TOKEN}`));
  });

  it('ends cleanly, and has logged the trace id of the caller', async () => {
    expect(await service.end()).toEqual({ code: 0, signal: null });

    const lines = service.lines.filter(({ requestId }) => requestId === 'abc');
    expect(lines).toMatchObject([{ trace_id: TRACE_ID, msg: 'request' }]);
  });
});

describe('the diagnostics channel plant-store:validation', () => {
  const application = TestApplication.use();

  it('has each validation with its error', async () => {
    const errors: unknown[] = [];
    const listener = (message: unknown) => errors.push((message as { error?: unknown }).error);
    subscribe('tracing:plant-store:validation:asyncEnd', listener);

    await application.post('{"id":1,"name":"Fern"}');
    await application.post('{"id":2}');

    unsubscribe('tracing:plant-store:validation:asyncEnd', listener);
    expect(errors).toMatchObject([undefined, { error: 40002 }]);
  });
});
