/**
 * The security header fields of errors, pages and documents: no sniffing, no caching, no scripts and no
 * frames. No browser could act on them in the answer to a creation, which only a script can ask for.
 *
 * `Strict-Transport-Security` is left to the operator: it commits a whole host name to HTTPS.
 */
export const securityHeaders = {
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
} as const;
