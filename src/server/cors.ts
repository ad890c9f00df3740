import type { IncomingMessage } from 'node:http';
import { Logger } from '@nestjs/common';
import type { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyRequest } from 'fastify';

/** The fields of an answer that a page may read. */
const EXPOSED_FIELDS = [
  ...['Retry-After', 'WWW-Authenticate', 'X-Request-Id', 'Idempotent-Replayed'],
  ...['RateLimit', 'RateLimit-Policy'],
];

/**
 * Lets pages of these origins use the service from a browser: the CORS protocol of the Fetch standard.
 * Refusals carry its fields too, so that a page can read them; only what the HTTP parser refuses does
 * not, because its header fields are not known.
 *
 * @param origins as browsers send them, for example `https://app.example.org`
 */
export function allowOrigins(adapter: FastifyAdapter, origins: readonly string[]): void {
  adapter.enableCors({
    origin: [...origins],
    methods: ['POST'],
    allowedHeaders: [
      ...['Authorization', 'Content-Type', 'Idempotency-Key'],
      ...['X-Request-Id', 'traceparent', 'tracestate'],
    ],
    exposedHeaders: EXPOSED_FIELDS,
    // Seconds for which a browser may remember the answer to a preflight.
    maxAge: 600,
    // The answer to a preflight passes the hooks of all answers. They refuse any other OPTIONS.
    preflightContinue: true,
    strictPreflight: false,
  });
}

/** The CORS fields of an answer that is given before the plugin sees the request. */
export function corsFields(
  { headers: { origin } }: IncomingMessage,
  origins: readonly string[],
): Record<string, string> {
  if (origins.length === 0) return {};
  const fields = { Vary: 'Origin', 'Access-Control-Expose-Headers': EXPOSED_FIELDS.join(', ') };
  const isAllowed = origin !== undefined && origins.includes(origin);
  return isAllowed ? { ...fields, 'Access-Control-Allow-Origin': origin } : fields;
}

/** Whether a request is a CORS preflight, Fetch standard section 3.2.2. */
export function isPreflight({ method, headers }: FastifyRequest): boolean {
  return (
    method === 'OPTIONS' &&
    headers.origin !== undefined &&
    headers['access-control-request-method'] !== undefined
  );
}

/** Milliseconds between two lines about refused origins. */
const LINE_INTERVAL = 60_000;

/**
 * Logs the origin of a preflight unless it is listed, at most once a minute: the browser tells the
 * developer of the page little.
 */
export function logRefusedOrigins(instance: FastifyInstance, origins: readonly string[]): void {
  const logger = new Logger('CORS');
  let nextLine = 0;
  instance.addHook('onRequest', (request, _reply, done) => {
    const { origin = '' } = request.headers;
    if (isPreflight(request) && !origins.includes(origin) && Date.now() >= nextLine) {
      nextLine = Date.now() + LINE_INTERVAL;
      const quoted = JSON.stringify(origin.slice(0, 200));
      logger.warn(`Pages of ${quoted} may not use the service: CORS_ORIGINS does not list it.`);
    }
    done();
  });
}
