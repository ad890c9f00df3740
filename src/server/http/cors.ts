import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyRequest } from 'fastify';

/** The response headers that a page may read. */
const EXPOSED_HEADERS =
  'Retry-After, WWW-Authenticate, X-Request-Id, Idempotent-Replayed, RateLimit, RateLimit-Policy';

/**
 * Returns the CORS headers of a response, Fetch standard section 3.2.3. Errors have them too, so that a page
 * can read them. `@fastify/cors` 11 is not used: it responds to preflights of unknown paths, with the same methods
 * for each path, and its route for all OPTIONS requests hides their 404 and 405.
 *
 * @param origins origins whose pages may use the service, as browsers send them: `https://app.example.org`
 */
export function corsHeaders(
  { headers: { origin } }: { readonly headers: IncomingHttpHeaders },
  origins: readonly string[],
): Record<string, string> {
  const headers = { Vary: 'Origin', 'Access-Control-Expose-Headers': EXPOSED_HEADERS };
  const isAllowed = origin !== undefined && origins.includes(origin);
  return isAllowed ? { ...headers, 'Access-Control-Allow-Origin': origin } : headers;
}

/** Whether a request is a preflight from a listed origin, Fetch standard section 3.2.2. */
export function isPreflight(
  { method, headers }: FastifyRequest,
  origins: readonly string[],
): boolean {
  const isCorsPreflight =
    method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
  return isCorsPreflight && origins.includes(headers.origin ?? '');
}

/**
 * Returns the additional headers of the response to a preflight. Allows the requested headers, because the
 * origins are listed and there are no cookies.
 *
 * @param methods the methods of the path, as in `Allow`
 */
export function preflightHeaders(
  { headers }: FastifyRequest,
  methods: string,
): Record<string, string> {
  return {
    'Access-Control-Allow-Methods': methods,
    'Access-Control-Allow-Headers': headers['access-control-request-headers'] ?? '',
    // Seconds for which a browser may cache the response.
    'Access-Control-Max-Age': '600',
  };
}
