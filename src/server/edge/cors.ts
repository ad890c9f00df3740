import type { IncomingMessage } from 'node:http';
import { Logger } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';

/** The fields of an answer that a page may read. */
const EXPOSED_FIELDS =
  'Retry-After, WWW-Authenticate, X-Request-Id, Idempotent-Replayed, RateLimit, RateLimit-Policy';

/**
 * The CORS fields of an answer, Fetch standard section 3.2.3. Refusals carry them too, so that a page can
 * read them; only what the HTTP parser refuses does not, because its header fields are not known.
 *
 * Not `@fastify/cors`: what the listener refuses never gets there, and its route for preflights would
 * answer every OPTIONS.
 *
 * @param origins whose pages may use the service, as browsers send them: `https://app.example.org`
 */
export function corsFields(
  { headers: { origin } }: IncomingMessage,
  origins: readonly string[],
): Record<string, string> {
  if (origins.length === 0) return {};
  const fields = { Vary: 'Origin', 'Access-Control-Expose-Headers': EXPOSED_FIELDS };
  const isAllowed = origin !== undefined && origins.includes(origin);
  return isAllowed ? { ...fields, 'Access-Control-Allow-Origin': origin } : fields;
}

/** The further fields of the answer to a preflight. */
export const PREFLIGHT_FIELDS = {
  'Access-Control-Allow-Methods': 'POST',
  'Access-Control-Allow-Headers':
    'Authorization, Content-Type, Idempotency-Key, X-Request-Id, traceparent, tracestate',
  // Seconds for which a browser may remember it.
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

/** How often rejected origins are logged, at most. */
const LOG_INTERVAL_MS = 60_000;

/**
 * Logs the origin of a preflight that is not in the list, at most once per minute: the browser tells the
 * developer of the page little.
 */
export class OriginLog {
  private readonly logger = new Logger('CORS');
  private silentUntil = 0;

  constructor(private readonly origins: readonly string[]) {}

  check({ headers: { origin = '' } }: FastifyRequest): void {
    if (this.origins.includes(origin) || Date.now() < this.silentUntil) return;
    this.silentUntil = Date.now() + LOG_INTERVAL_MS;
    const quoted = JSON.stringify(origin.slice(0, 200));
    this.logger.warn(`Pages of ${quoted} may not use the service: CORS_ORIGINS does not list it.`);
  }
}
