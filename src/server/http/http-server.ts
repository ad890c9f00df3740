import { createServer as createHttpServer, type Server } from 'node:http';
import type { Settings } from '../settings/environment';
import { createTlsServer } from './tls';

/** The interval at which Node.js checks for timed-out requests. */
const TIMEOUT_CHECK_INTERVAL_MS = 1000;

/**
 * A connection without traffic for `REQUEST_TIMEOUT` and this time is closed. It exceeds the 20 seconds in which
 * every request gets its response.
 */
const RESPONSE_TIME_MS = 30_000;

/**
 * Creates the HTTP or HTTPS server of the service, without a listener for requests.
 *
 * @throws OperatorError when the certificate or its key cannot be used
 */
export function createServer(settings: Settings): Server {
  const options = {
    maxHeaderSize: settings.headersLimit,
    headersTimeout: settings.headersTimeout,
    requestTimeout: settings.requestTimeout,
    keepAliveTimeout: settings.keepAliveTimeout,
    connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL_MS,
    // Node.js would reject a missing Host with an empty body. A hook rejects it with the Error body.
    requireHostHeader: false,
    // Shows a repeated Host header.
    joinDuplicateHeaders: true,
  };
  const server = settings.tls ? createTlsServer(settings.tls, options) : createHttpServer(options);
  // Disconnects a client that does not read its response.
  return server.setTimeout(settings.requestTimeout + RESPONSE_TIME_MS);
}
