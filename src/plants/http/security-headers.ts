/**
 * The security headers of errors, pages and documents: no sniffing, no caching, no scripts and no frames.
 * Successful create responses do not need them: only scripts can send such requests.
 *
 * `Strict-Transport-Security` is left to the operator, because it commits a whole host name to HTTPS.
 */
export const securityHeaders = {
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-store',
  'Content-Security-Policy':
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
} as const;
