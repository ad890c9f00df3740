import type { IncomingMessage } from 'node:http';
import { Logger } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';

/** The response headers that a page may read. */
const EXPOSED_HEADERS =
  'Retry-After, WWW-Authenticate, X-Request-Id, Idempotent-Replayed, RateLimit, RateLimit-Policy';

/**
 * Returns the CORS headers of a response, Fetch standard section 3.2.3. Rejections have them too, so that a
 * page can read them. Only a response to bytes that the HTTP parser rejects has none, because the request
 * headers are unknown.
 *
 * `@fastify/cors` is not used: it does not see requests that the listener rejects, and its preflight route
 * would answer every OPTIONS request.
 *
 * @param origins origins whose pages may use the service, as browsers send them: `https://app.example.org`
 */
export function corsHeaders(
  { headers: { origin } }: IncomingMessage,
  origins: readonly string[],
): Record<string, string> {
  if (origins.length === 0) return {};
  const headers = { Vary: 'Origin', 'Access-Control-Expose-Headers': EXPOSED_HEADERS };
  const isAllowed = origin !== undefined && origins.includes(origin);
  return isAllowed ? { ...headers, 'Access-Control-Allow-Origin': origin } : headers;
}

/** Additional headers of the response to a preflight. */
export const PREFLIGHT_HEADERS = {
  'Access-Control-Allow-Methods': 'POST',
  'Access-Control-Allow-Headers':
    'Authorization, Content-Type, Idempotency-Key, X-Request-Id, traceparent, tracestate',
  // Seconds for which a browser may cache the response.
  'Access-Control-Max-Age': '600',
};

/** Whether a request is a CORS preflight, Fetch standard section 3.2.2. */
export function isPreflight({ method, headers }: FastifyRequest): boolean {
  return (
    method === 'OPTIONS' &&
    headers.origin !== undefined &&
    headers['access-control-request-method'] !== undefined
  );
}

/** The minimum time between two log lines about rejected origins. */
const LOG_INTERVAL_MS = 60_000;

/**
 * Logs the origin of a rejected preflight, at most once per minute, because the browser tells the developer
 * of the page little.
 */
export class OriginLog {
  private readonly logger = new Logger('CORS');
  private silentUntil = 0;

  constructor(private readonly origins: readonly string[]) {}

  check({ headers: { origin = '' } }: FastifyRequest): void {
    if (this.origins.includes(origin) || Date.now() < this.silentUntil) return;
    this.silentUntil = Date.now() + LOG_INTERVAL_MS;
    const quoted = JSON.stringify(origin.slice(0, 200));
    this.logger.warn(
      `Rejected a CORS preflight from ${quoted}: the origin is not in CORS_ORIGINS.`,
    );
  }
}
