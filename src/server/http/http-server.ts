import { createServer as createHttpServer, type Server } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { pathOf } from '../../plants/http/request';
import type { Settings } from '../settings/environment';
import type { Metrics } from '../monitoring/metrics';
import { Connections } from './connections';
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
  };
  const server = settings.tls ? createTlsServer(settings.tls, options) : createHttpServer(options);
  // Disconnects a client that does not read its response.
  return server.setTimeout(settings.requestTimeout + RESPONSE_TIME_MS);
}

/** The paths that {@link createHealthServer} serves. */
const HEALTH_PATHS = ['/health/live', '/health/ready', '/metrics'];

/** The number of connections that {@link createHealthServer} accepts. */
const MAX_HEALTH_CONNECTIONS = 8;

/**
 * Creates a server for health and metrics only. It has its own connection limit, so it responds even if the
 * main port is full. It runs until the process exits, and does not delay the exit.
 */
export function createHealthServer(
  instance: FastifyInstance,
  settings: Settings,
  metrics: Metrics,
): Server {
  const connections = new Connections(metrics);
  const listener = connections.limit((request, response) => {
    // All other paths get 404, as /health does.
    if (!HEALTH_PATHS.includes(pathOf(request.url ?? ''))) request.url = '/health';
    instance.routing(request, response);
  });
  const server = createServer(settings).on('request', listener).on('checkExpectation', listener);
  server.on('clientError', (error, socket) => {
    connections.handleError(error, socket as Socket);
  });
  server.maxConnections = MAX_HEALTH_CONNECTIONS;
  return server.unref();
}
