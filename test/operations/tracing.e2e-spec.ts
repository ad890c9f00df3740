import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { TOKEN } from '../support/application';
import { type CollectedSpan, Collector } from '../support/collector';
import { creation } from '../support/load';
import { ServiceHome, type ServiceProcess } from '../support/service-process';
import { lockDatabase } from '../support/sqlite';
import { until } from '../support/until';
import { exchange } from '../support/wire';

jest.setTimeout(60_000);

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const CALLER_ID = 'b7ad6b7169203331';

const TLS_FILES = join(__dirname, '../support/tls');

/** OTLP's numbers. */
const INTERNAL = 1;
const SERVER = 2;
const UNSET = 0;
const ERROR = 2;

const home = new ServiceHome();
let service: ServiceProcess;
let collector: Collector;

/** Starts a service that sends its spans at once. */
async function start(environment: NodeJS.ProcessEnv = {}): Promise<void> {
  home.open();
  collector = await Collector.start();
  service = await home.start({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_BSP_SCHEDULE_DELAY: '1',
    ...environment,
  });
}

async function remove(): Promise<void> {
  await home.close();
  collector.stop();
}

async function terminate(): Promise<void> {
  expect(await service.end()).toEqual({ code: 0, signal: null });
}

async function post(body: string, headers: Record<string, string> = {}): Promise<number> {
  return (await service.post(body, { 'user-agent': 'gardener', ...headers }, '?secret')).status;
}

/** Waits for this many spans, and returns all of them, sorted by name. */
async function spans(count: number): Promise<CollectedSpan[]> {
  await until(() => collector.spans.length >= count);
  return collector.spans.toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

describe('traces', () => {
  beforeAll(() => start({ ACCESS_LOG: 'true', AUTH_TOKENS: `${TOKEN},secret-token` }));
  beforeEach(() => {
    collector.requests.length = 0;
  });
  afterAll(remove);

  it('have a span for the request, with child spans for the validation and the commit', async () => {
    const { port } = await service.url();
    await post('{"id":1,"name":"Fern"}');

    const [request, commit, validation] = await spans(3);
    expect(request).toMatchObject({ name: 'POST /plants', kind: SERVER, status: UNSET });
    expect(request?.parentSpanId).toBeUndefined();
    expect(request?.attributes).toEqual({
      'http.request.method': 'POST',
      'http.route': '/plants',
      'http.response.status_code': 200,
      'url.path': '/plants',
      'url.scheme': 'http',
      'network.protocol.version': '1.1',
      'server.address': '127.0.0.1',
      'server.port': Number(port),
      'user_agent.original': 'gardener',
    });
    const child = { kind: INTERNAL, status: UNSET, parentSpanId: request?.spanId };
    expect(validation).toMatchObject({ ...child, name: 'validate plant', attributes: {} });
    expect(commit).toMatchObject({ ...child, name: 'commit plant' });
    expect(commit?.attributes).toEqual({ 'plant_store.batch.size': 1 });
    expect(new Set(collector.spans.map(({ traceId }) => traceId)).size).toBe(1);
  });

  it.each([
    ['100-continue', 200],
    ['x', 417],
  ])('have a span for a request with the expectation %s', async (expectation, status) => {
    const fields = `Host: x\r\nExpect: ${expectation}\r\nConnection: close`;
    await exchange(await service.url(), creation(200).text.replace('Host: x', fields));

    const isRequest = ({ kind }: CollectedSpan) => kind === SERVER;
    await until(() => collector.spans.some(isRequest));
    const [request, ...others] = collector.spans.filter(isRequest);
    expect(request?.attributes['http.response.status_code']).toBe(status);
    expect(others).toEqual([]);
    await until(() => status !== 200 || collector.spans.length === 3);
    expect(new Set(collector.spans.map(({ traceId }) => traceId)).size).toBe(1);
  });

  it('mark the request of a repeated creation', async () => {
    await post('{"id":2,"name":"Fern"}', { 'idempotency-key': 'secret-key' });
    await post('{"id":2,"name":"Fern"}', { 'idempotency-key': 'secret-key' });

    const requests = (await spans(6)).filter(({ name }) => name === 'POST /plants');
    const marks = requests.map(({ attributes }) => attributes['plant_store.idempotent_replay']);
    expect(marks.toSorted()).toEqual([true, undefined]);
    expect(JSON.stringify(collector.spans)).not.toContain('secret-key');
  });

  it("continue the caller's trace", async () => {
    await post('{"id":2,"name":"Fern"}', {
      traceparent: `00-${TRACE_ID}-${CALLER_ID}-01`,
      tracestate: 'garden=1',
    });

    const [request, ...children] = await spans(3);
    expect(request).toMatchObject({
      traceId: TRACE_ID,
      parentSpanId: CALLER_ID,
      traceState: 'garden=1',
    });
    expect(children.map(({ traceId }) => traceId)).toEqual([TRACE_ID, TRACE_ID]);
  });

  it('leave out requests that the caller does not sample', async () => {
    await post('{"id":3,"name":"Fern"}', { traceparent: `00-${TRACE_ID}-${CALLER_ID}-00` });
    await fetch(new URL('/nothing', await service.url()));

    expect((await spans(1)).map(({ name }) => name)).toEqual(['GET']);
  });

  it('do not count an invalid request as an error of the service', async () => {
    await post('{"id":"1","name":"Fern"}');

    const [request, validation] = await spans(2);
    expect(request).toMatchObject({
      status: UNSET,
      attributes: { 'http.response.status_code': 400 },
    });
    expect(request?.attributes).not.toHaveProperty(['error.type']);
    expect(validation).toMatchObject({ status: UNSET, attributes: { 'error.type': '40002' } });
  });

  it('count an unavailable store as an error of the service, and the log contains their ids', async () => {
    const lock = lockDatabase(home.file);
    await post('{"id":4,"name":"Fern"}', { 'x-request-id': 'locked' });
    lock.close();

    const [request, commit, validation] = await spans(3);
    expect(request).toMatchObject({ status: ERROR, attributes: { 'error.type': '503' } });
    expect(commit).toMatchObject({ status: ERROR, attributes: { 'error.type': '50300' } });
    expect(validation?.status).toBe(UNSET);
    const logged = () => service.lines.filter(({ requestId }) => requestId === 'locked');
    await until(() => logged().length >= 2);
    expect(logged()).toMatchObject(
      ['50300 ', 'request'].map((message) => ({
        msg: expect.stringContaining(message) as string,
        trace_id: request?.traceId,
        span_id: request?.spanId,
        trace_flags: '01',
      })),
    );
  });

  it('have no text from the caller in the span name of a request without a route', async () => {
    await fetch(new URL('/a', await service.url()));
    await fetch(new URL('/b', await service.url()), { method: 'PROPFIND' });

    expect(await spans(2)).toMatchObject([
      { name: 'GET', attributes: { 'url.path': '/a', 'http.response.status_code': 404 } },
      {
        name: 'HTTP',
        attributes: {
          'http.request.method': '_OTHER',
          'http.request.method_original': 'PROPFIND',
          'url.path': '/b',
        },
      },
    ]);
  });

  it('contain no token, no query, no body and no other header field', async () => {
    await post('{"id":5,"name":"secret"}', { 'x-secret': 'secret', baggage: 'secret=secret' });
    await post('{"id":5,"name":"secret"}', { authorization: 'Bearer secret-token' });
    await post('{"id":6,"name":"secret","tag":7}');
    await post('{"secret');
    await post('{}', { authorization: 'Bearer secret' });

    await spans(3 + 3 + 2 + 2 + 1);
    expect(JSON.stringify(collector.requests)).not.toMatch(new RegExp(`secret|${TOKEN}`, 'i'));
  });

  it('name the service plant-store and its version', async () => {
    await fetch(await service.url());

    await spans(1);
    expect(collector.resource).toMatchObject({
      'service.name': 'plant-store',
      'service.version': expect.stringMatching(/^\d+\.\d+\.\d+$/) as string,
    });
  });
});

describe('traces with other settings', () => {
  afterEach(remove);

  it('take name, resource and sampler from OTEL_*', async () => {
    await start({
      OTEL_SERVICE_NAME: 'garden',
      OTEL_RESOURCE_ATTRIBUTES: 'service.version=7,garden.bed=3',
      OTEL_TRACES_SAMPLER: 'parentbased_always_off',
    });
    await post('{"id":1,"name":"Fern"}');
    await post('{"id":2,"name":"Fern"}', { traceparent: `00-${TRACE_ID}-${CALLER_ID}-01` });

    expect((await spans(3)).map(({ traceId }) => traceId)).toEqual(Array(3).fill(TRACE_ID));
    expect(collector.resource).toMatchObject({
      'service.name': 'garden',
      'service.version': '7',
      'garden.bed': '3',
    });
  });

  it('are sent as protobuf by default, the last of them at shutdown', async () => {
    await start({ OTEL_EXPORTER_OTLP_PROTOCOL: undefined, OTEL_BSP_SCHEDULE_DELAY: undefined });
    await post('{"id":1,"name":"Fern"}');
    expect(collector.requests).toEqual([]);
    await terminate();

    expect(collector.requests).toEqual([
      {
        path: '/v1/traces',
        contentType: 'application/x-protobuf',
        body: expect.stringContaining('POST /plants') as string,
      },
    ]);
  });

  it('name the scheme https', async () => {
    await start({ TLS_CERT: `${TLS_FILES}/server.crt`, TLS_KEY: `${TLS_FILES}/server.key` });
    await once(get(await service.url(), { rejectUnauthorized: false }), 'response');

    const [request] = await spans(1);
    expect(request?.attributes).toMatchObject({ 'url.scheme': 'https' });
  });
});

describe('a collector', () => {
  afterEach(remove);

  it('that does not answer fails no request, and the shutdown gives up on it with a log line', async () => {
    const silent = createServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as { port: number };
    const attempt = once(silent, 'connection');
    const endpoint = `http://127.0.0.1:${port}`;
    await start({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, SHUTDOWN_TIMEOUT: '5s' });

    const statuses = [await post('{"id":0,"name":"Fern"}')];
    await attempt;
    for (let id = 1; id < 10; id++) statuses.push(await post(`{"id":${id},"name":"Fern"}`));
    await terminate();

    expect(statuses).toEqual(Array(10).fill(200));
    expect(service.stdout).toContain('The last spans could not be sent within 500 ms.');
    silent.close();
  });

  it('that cannot be reached is reported in the log without the id of any request', async () => {
    await start({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
      OTEL_EXPORTER_OTLP_TIMEOUT: '100',
    });

    await post('{"id":1,"name":"Fern"}');
    await until(() => service.stdout.includes('"OpenTelemetry"'));

    const [line = ''] = service.stdout.split('\n').filter((each) => each.includes('OpenTelemetry'));
    expect(JSON.parse(line)).toMatchObject({ level: 50 });
    expect(line).not.toMatch(/requestId|trace_id/);
  });

  it('that refuses is reported once a second, and the other failures are counted', async () => {
    await start();
    collector.status = 401;
    const begin = performance.now();

    for (let id = 0; !service.stdout.includes('Repeated'); id++) {
      await post(`{"id":${id},"name":"Fern"}`);
      await setTimeout(10);
    }
    await terminate();

    const seconds = (performance.now() - begin) / 1000;
    const lines = service.stdout.split('\n').filter((line) => line.includes('Unauthorized'));
    const [first = '', second = ''] = lines;
    expect(first).not.toContain('Repeated');
    expect(second).toMatch(/"Repeated \d+ more times within a second: /);
    expect(lines.length).toBeLessThan(2 * seconds + 2);
  });
});

describe('OpenTelemetry', () => {
  beforeEach(() => {
    home.open();
  });
  afterEach(() => home.close());

  /**
   * Node options that make the service write to its standard error which modules of OpenTelemetry it
   * loads. Without the API, which the client of Prometheus depends on.
   *
   * @param missing a package that cannot be found
   */
  function watchModules(missing = ''): string {
    const preload = join(home.folder, 'watch.cjs');
    writeFileSync(
      preload,
      `require('node:module').registerHooks({
        resolve(specifier, context, next) {
          if (specifier === '${missing}') {
            throw Object.assign(new Error('not found'), { code: 'MODULE_NOT_FOUND' });
          }
          const resolved = next(specifier, context);
          if (/@opentelemetry.(?!api)/.test(resolved.url)) process.stderr.write(resolved.url + '\\n');
          return resolved;
        },
      });`,
    );
    return `--require ${preload}`;
  }

  it('is loaded when traces are enabled', async () => {
    service = await home.start({
      NODE_OPTIONS: watchModules(),
      OTEL_TRACES_EXPORTER: 'console',
    });
    await terminate();

    expect(service.stderr).toContain('@opentelemetry/sdk-node');
  });

  it.each([{}, { OTEL_TRACES_EXPORTER: 'none', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://x' }])(
    'is not loaded with %p, neither at the start nor by requests',
    async (environment) => {
      service = await home.start({
        NODE_OPTIONS: watchModules(),
        ...environment,
      });
      await post('{"id":1,"name":"Fern"}', { traceparent: `00-${TRACE_ID}-${CALLER_ID}-01` });
      await terminate();

      expect(service.stderr).toBe('');
    },
  );

  it('is only needed when traces are enabled: then the service ends with one sentence', async () => {
    service = home.begin({
      NODE_OPTIONS: watchModules('@opentelemetry/sdk-node'),
      AUTH_TOKENS: TOKEN,
      OTEL_TRACES_EXPORTER: 'otlp',
    });

    expect(await service.ended).toEqual({ code: 1, signal: null });
    expect(service.stderr.replaceAll(/^file:.*\n/gm, '')).toBe(
      'The OTEL_* variables enable traces, but OpenTelemetry is not installed. Run: npm install @opentelemetry/api @opentelemetry/resources @opentelemetry/sdk-node\n',
    );
  });
});
