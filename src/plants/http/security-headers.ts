/**
 * The security headers of errors, pages and documents. Only scripts can send create requests, so successes do not need
 * them. `Strict-Transport-Security` is left to the operator, because it commits a whole host name to HTTPS.
 */
export const securityHeaders = {
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-store',
  'Content-Security-Policy':
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
} as const;
