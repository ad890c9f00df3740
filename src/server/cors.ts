import type { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyRequest } from 'fastify';

/** How long a browser may remember the answer to a preflight, in seconds. */
const MAX_AGE = 600;

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
    exposedHeaders: [
      ...['Retry-After', 'WWW-Authenticate', 'X-Request-Id', 'Idempotent-Replayed'],
      ...['RateLimit', 'RateLimit-Policy'],
    ],
    maxAge: MAX_AGE,
    // The answer to a preflight passes the hooks of all answers. They refuse any other OPTIONS.
    preflightContinue: true,
    strictPreflight: false,
  });
}

/** Whether a request is a CORS preflight, Fetch standard section 3.2.2. */
export function isPreflight({ method, headers }: FastifyRequest): boolean {
  return (
    method === 'OPTIONS' &&
    headers.origin !== undefined &&
    headers['access-control-request-method'] !== undefined
  );
}
