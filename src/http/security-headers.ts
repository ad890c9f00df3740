/**
 * The security header fields of errors and pages: no sniffing, no caching, no scripts and no frames. A
 * page of our own, such as Swagger UI, replaces `Content-Security-Policy`.
 *
 * `Strict-Transport-Security`, which OWASP also lists for REST services, is left to the operator: it
 * commits a whole host name to HTTPS, with everything else that the host serves.
 */
export const securityHeaders = {
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
} as const;
