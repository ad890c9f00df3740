import type { FastifyRequest } from 'fastify';

const EXPOSED_HEADERS =
  'Retry-After, WWW-Authenticate, X-Request-Id, Idempotent-Replayed, RateLimit, RateLimit-Policy';

/**
 * Returns the CORS headers of a response, Fetch standard section 3.2.3. Errors have them too, so that a page can read
 * them. `@fastify/cors` 11 is not used: its route for all OPTIONS requests hides their 404 and 405, and it allows the
 * same methods for each path.
 */
export function corsHeaders(
  { headers: { origin } }: FastifyRequest,
  origins: readonly string[],
): Record<string, string> {
  const headers = { Vary: 'Origin', 'Access-Control-Expose-Headers': EXPOSED_HEADERS };
  const isAllowed = origin !== undefined && origins.includes(origin);
  return isAllowed ? { ...headers, 'Access-Control-Allow-Origin': origin } : headers;
}

/**
 * Returns the additional headers of the response to a preflight from a listed origin, Fetch standard section 3.2.2.
 * Allows the requested headers, because the origins are listed and there are no cookies.
 * @param methods those of the path, as in `Allow`
 */
export function preflightHeaders(
  { method, headers }: FastifyRequest,
  origins: readonly string[],
  methods: string,
): Record<string, string> | undefined {
  const isPreflight = method === 'OPTIONS' && headers['access-control-request-method'];
  if (!isPreflight || !origins.includes(headers.origin ?? '')) return undefined;
  return {
    'Access-Control-Allow-Methods': methods,
    'Access-Control-Allow-Headers': headers['access-control-request-headers'] ?? '',
    // Seconds for which a browser may cache the response.
    'Access-Control-Max-Age': '600',
  };
}
