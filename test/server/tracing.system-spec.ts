/** Runs the service with the agent of OpenTelemetry, from npm, and receives its spans. */
import { symlinkSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { TOKEN } from '../support/application';
import { listen } from '../support/listen';
import { useServiceHome } from '../support/service-process';
import { until } from '../support/until';

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const CALLER_ID = 'b7ad6b7169203331';

describe("a service with OpenTelemetry's agent", () => {
  const home = useServiceHome();

  it("sends a span per create request, a child of the caller's span without secrets, and logs the caller's traceparent", async () => {
    // This is the state after `npm install` in the folder of the service.
    symlinkSync(join(__dirname, '../node_modules'), join(home.folder, 'node_modules'));
    const collected: string[] = [];
    const collector = createServer((request, response) => {
      void text(request).then((body) => {
        collected.push(body);
        response.end();
      });
    });
    const service = await home.start({
      NODE_OPTIONS: '--import @opentelemetry/auto-instrumentations-node/register',
      OTEL_SERVICE_NAME: 'garden',
      OTEL_EXPORTER_OTLP_ENDPOINT: (await listen(collector)).origin,
      OTEL_METRICS_EXPORTER: 'none',
      OTEL_LOGS_EXPORTER: 'none',
      OTEL_NODE_ENABLED_INSTRUMENTATIONS: 'http',
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_BSP_SCHEDULE_DELAY: '1',
      ACCESS_LOG: 'true',
    });

    const traceparent = `00-${TRACE_ID}-${CALLER_ID}-01`;
    await service.post('{"id":1,"name":"secret"}', {
      'x-request-id': 'abc',
      'idempotency-key': 'secret',
      traceparent,
      tracestate: 'garden=1',
    });
    await until(() => collected.join().includes('"/plants"'));

    const [span] = /{"traceId".*?"\/plants".*?]/.exec(collected.join()) ?? [];
    expect(span).toContain(`"traceId":"${TRACE_ID}"`);
    expect(span).toContain(`"parentSpanId":"${CALLER_ID}"`);
    expect(span).toContain('"traceState":"garden=1"');
    expect(collected.join()).toContain('"service.name","value":{"stringValue":"garden"}');
    expect(collected.join()).not.toMatch(new RegExp(`secret|${TOKEN}`));
    expect(await service.end()).toEqual({ code: 0, signal: null });
    const lines = service.lines.filter(({ requestId }) => requestId === 'abc');
    expect(lines).toMatchObject([{ traceparent, msg: 'request' }]);
    collector.close();
  });
});
