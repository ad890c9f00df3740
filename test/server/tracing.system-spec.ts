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

/** The number of the span kind SERVER in OTLP. */
const SERVER_KIND = 2;

/** Traces in OTLP/JSON. */
interface Traces {
  readonly resourceSpans: { readonly scopeSpans: { readonly spans: { kind: number }[] }[] }[];
}

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
    const spans = () =>
      collected
        .flatMap((body) => (JSON.parse(body) as Traces).resourceSpans)
        .flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans))
        .filter(({ kind }) => kind === SERVER_KIND);
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
    await until(() => spans().length > 0);

    const attributes = expect.arrayContaining([
      { key: 'url.path', value: { stringValue: '/plants' } },
      { key: 'http.response.status_code', value: { intValue: 200 } },
    ]) as unknown;
    const caller = { traceId: TRACE_ID, parentSpanId: CALLER_ID, traceState: 'garden=1' };
    expect(spans()).toMatchObject([{ ...caller, name: 'POST', attributes }]);
    expect(collected.join()).toContain('"garden"');
    expect(collected.join()).not.toMatch(new RegExp(`secret|${TOKEN}`));
    expect(await service.end()).toEqual({ code: 0, signal: null });
    const lines = service.lines.filter(({ requestId }) => requestId === 'abc');
    expect(lines).toMatchObject([{ traceparent, msg: 'request' }]);
    collector.close();
  });
});
