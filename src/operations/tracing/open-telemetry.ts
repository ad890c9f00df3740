import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from '@nestjs/common';
import {
  type Attributes,
  type Context,
  context,
  diag,
  type DiagLogFunction,
  type DiagLogger,
  DiagLogLevel,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
} from '@opentelemetry/api';
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources';
import { NodeSDK } from '@opentelemetry/sdk-node';
import type { FastifyInstance } from 'fastify';
import { PlantStoreError } from '../../errors';
import { LogThrottle, pathOf } from '../../http';
import {
  commitChannel,
  type CommitEvent,
  IDEMPOTENT_REPLAYED,
  validationChannel,
} from '../../plants';
import { packageVersion } from '../../package-version';
import { traceFields } from '../logging';

export type Sdk = Pick<NodeSDK, 'shutdown'>;

const SERVICE = 'plant-store';

/** The methods that the semantic conventions know; span names must contain no others. */
const METHODS = ['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT', 'TRACE'];

/** The `Host` field, RFC 9110 section 7.2: a name or an address, and an optional port. */
const HOST = /^(\[[^\]]*\]|[^:]+)(?::(\d+))?$/;

/**
 * Starts OpenTelemetry's SDK for this process, with traces as its only signal. Exporter, sampler,
 * propagators, limits and resource come from `OTEL_*`.
 *
 * @param logger gets the SDK's messages from the level `OTEL_LOG_LEVEL` up, by default warnings
 */
export function startSdk(logger: Logger): Sdk {
  const service = { 'service.name': SERVICE, 'service.version': packageVersion() };
  const sdk = new NodeSDK({
    resource: defaultResource().merge(resourceFromAttributes(service)),
    metricReaders: [],
    logRecordProcessors: [],
  });

  // Only now: the constructor may set a logger that writes to the console.
  const logLevel = levelOf(process.env.OTEL_LOG_LEVEL);
  diag.setLogger(diagLogger(logger), { logLevel, suppressOverrideMessage: true });
  sdk.start();
  return sdk;
}

/** Writes the SDK's messages to the log, each at most once a second: an exporter repeats its own. */
function diagLogger(logger: Logger): DiagLogger {
  // A message about a batch of spans belongs to no single request.
  const outsideRequests = AsyncLocalStorage.snapshot();

  const write = (level: 'error' | 'warn' | 'log' | 'debug' | 'verbose'): DiagLogFunction => {
    const log = (text: string): void => {
      outsideRequests(() => {
        logger[level](text);
      });
    };
    const throttle = new LogThrottle<string>(1, (kind, count) => {
      log(`Repeated ${count} more times within a second: ${kind}`);
    });
    return (...parts) => {
      const text = parts.map(String).join(' ');
      // Messages that differ only in numbers count as one.
      if (throttle.admit(text.replaceAll(/\d+/g, '#'))) log(text);
    };
  };
  const [error, warn, info] = [write('error'), write('warn'), write('log')];
  return { error, warn, info, debug: write('debug'), verbose: write('verbose') };
}

function levelOf(name = ''): DiagLogLevel {
  const levels: Partial<Record<string, DiagLogLevel | string>> = DiagLogLevel;
  const level = levels[name.toUpperCase()];
  return typeof level === 'number' ? level : DiagLogLevel.WARN;
}

/**
 * Creates a span for every request by the semantic conventions for HTTP, as a child of the caller's
 * span if it sent one. The validation and the commit get child spans. Call it before routes are added.
 */
export function traceRequests(instance: FastifyInstance): void {
  const tracer = trace.getTracer(SERVICE, packageVersion());
  const contexts = new WeakMap<IncomingMessage, Context>();

  const startSpan = (request: IncomingMessage, response: ServerResponse): void => {
    const caller = propagation.extract(ROOT_CONTEXT, request.headers);
    const span = startRequest(tracer, request, caller);
    contexts.set(request, trace.setSpan(caller, span));
    response.once('close', () => {
      // Otherwise the caller disconnected before the answer.
      const { headersSent, statusCode: status } = response;
      if (headersSent) span.setAttribute('http.response.status_code', status);
      if (headersSent && status >= 500) markFailed(span, status, status);
      span.end();
    });
  };
  // Not a hook: some requests are answered before any hook sees them.
  for (const event of ['request', 'checkContinue', 'checkExpectation']) {
    instance.server.prependListener(event, startSpan);
  }
  instance.addHook('onRequest', ({ raw, method, routeOptions: { url } }, _reply, done) => {
    const span = trace.getSpan(contexts.get(raw) ?? ROOT_CONTEXT);
    if (url !== undefined) span?.updateName(`${method} ${url}`).setAttribute('http.route', url);
    done();
  });
  // Only now: the body arrives in another asynchronous context.
  instance.addHook('preHandler', ({ raw }, _reply, done) => {
    context.with(contexts.get(raw) ?? ROOT_CONTEXT, done);
  });
  // The span ends when the connection is done with the response, which is later.
  instance.addHook('onResponse', ({ raw }, reply, done) => {
    const span = trace.getSpan(contexts.get(raw) ?? ROOT_CONTEXT);
    if (reply.hasHeader(IDEMPOTENT_REPLAYED)) {
      span?.setAttribute('plant_store.idempotent_replay', true);
    }
    done();
  });

  const validation = operationSpans(tracer, 'validate plant');
  validationChannel.subscribe({ start: validation.start, end: validation.end });
  const commit = operationSpans(tracer, 'commit plant');
  commitChannel.subscribe({ start: commit.start, asyncEnd: commit.end });
}

function startRequest(tracer: Tracer, request: IncomingMessage, caller: Context): Span {
  const { method = '', url = '', headers, httpVersion, socket } = request;
  const known = METHODS.includes(method);
  const [, address, port] = HOST.exec(headers.host ?? '') ?? [];
  // Without the query and the other header fields, which may hold secrets.
  const attributes: Attributes = {
    'http.request.method': known ? method : '_OTHER',
    'http.request.method_original': known ? undefined : method,
    'url.path': pathOf(url),
    'url.scheme': 'encrypted' in socket ? 'https' : 'http',
    'network.protocol.version': httpVersion,
    'server.address': address,
    'server.port': port === undefined ? undefined : Number(port),
    'user_agent.original': headers['user-agent'],
  };
  const options = { kind: SpanKind.SERVER, attributes };
  const span = tracer.startSpan(known ? method : 'HTTP', options, caller);
  const { traceId, spanId, traceFlags } = span.spanContext();
  traceFields.set(request, {
    trace_id: traceId,
    span_id: spanId,
    trace_flags: traceFlags.toString(16).padStart(2, '0'),
  });
  return span;
}

/** Sets the type of the error. Only a 5xx counts as an error of the service. */
function markFailed(span: Span, type: number | string, status: number): void {
  span.setAttribute('error.type', String(type));
  if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
}

/** Listeners for a tracing channel that create a child span of the current one for each operation. */
function operationSpans(tracer: Tracer, name: string) {
  const spans = new WeakMap<object, Span>();
  return {
    start: (event: object) => void spans.set(event, tracer.startSpan(name)),
    end: (event: CommitEvent & { readonly error?: unknown }) => {
      const span = spans.get(event);
      if (span === undefined) return;
      const { batchSize, error } = event;
      if (batchSize !== undefined) span.setAttribute('plant_store.batch.size', batchSize);
      if (error instanceof PlantStoreError) markFailed(span, error.error, error.getStatus());
      else if (error !== undefined) markFailed(span, '_OTHER', 500);
      span.end();
    },
  };
}
