import { createServer as createHttpServer, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { limitConnections } from './connection-limit';
import { readTls, reloadTls, type TlsFiles } from './tls';

/** Durations are in milliseconds, sizes in bytes. */
export interface HttpOptions {
  /** Undefined for HTTP. */
  readonly tls: TlsFiles | undefined;
  readonly bodyLimit: number;
  /** Of the header section of a request, request line included. */
  readonly headersLimit: number;
  readonly maxConnections: number;
  /** None for no CORS. */
  readonly corsOrigins: readonly string[];
  readonly headersTimeout: number;
  readonly requestTimeout: number;
  readonly keepAliveTimeout: number;
  readonly shutdownGrace: number;
  readonly shutdownTimeout: number;
}

/** How often Node looks for requests that have timed out, in milliseconds. */
const TIMEOUT_CHECK_INTERVAL = 1000;

/**
 * Creates the HTTP or HTTPS server of the service, without a listener for requests.
 *
 * @throws OperatorError when the certificate or its key cannot be used
 */
export function createServer(options: HttpOptions): Server {
  const settings = {
    maxHeaderSize: options.headersLimit,
    headersTimeout: options.headersTimeout,
    requestTimeout: options.requestTimeout,
    keepAliveTimeout: options.keepAliveTimeout,
    connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL,
    // Node answers a missing Host with an empty body; findHeadFault() answers with the Error body.
    requireHostHeader: false,
  };
  const server = options.tls
    ? createTlsServer(options.tls, settings, options.headersTimeout)
    : createHttpServer(settings);
  // Our rules see all fields. The size of the header section bounds their number.
  server.maxHeadersCount = 0;
  limitConnections(server, options.maxConnections);
  // Connections decides about a stalled connection. A client that does not send gets 408 before.
  return server.setTimeout(options.requestTimeout + 2 * TIMEOUT_CHECK_INTERVAL);
}

function createTlsServer(files: TlsFiles, settings: object, handshakeTimeout: number): Server {
  const pair = readTls(files);
  const server = createHttpsServer({
    ...settings,
    ...pair.current,
    handshakeTimeout,
    // As the HTTP server of Node has it.
    allowHalfOpen: true,
  });
  reloadTls(server, pair);
  return server;
}
