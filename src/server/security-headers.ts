/**
 * What every answer says to a browser: take it for what it is declared to be, do not keep it, and
 * neither run nor frame it. The service answers programs; a page of its own, such as Swagger UI,
 * replaces `Content-Security-Policy`.
 *
 * Of OWASP's list for REST services, `Strict-Transport-Security` is left to the operator: it commits a
 * whole host name to HTTPS, for whatever else it serves.
 */
export const securityHeaders = {
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
} as const;
