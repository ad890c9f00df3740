import { readdirSync, readFileSync } from 'node:fs';
import { createServer as createHttpServer, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { Logger } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { NotFoundError } from '../../plants/errors/errors';
import { pathOf } from '../../plants/http/request';
import type { Settings } from '../settings/environment';
import { Connections } from './connections';
import { Rejections } from './rejections';
import { listenForRequests } from './request-listener';
import type { Metrics } from '../watch/metrics';
import { createTlsServer } from './tls';

/** The interval at which Node.js checks for timed-out requests. */
const TIMEOUT_CHECK_INTERVAL_MS = 1000;

/** File descriptors reserved for later use: database sessions, files, health checks. */
const RESERVED_DESCRIPTORS = 32;

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
    // Node.js would reject a missing Host with an empty body. validateHeaders() rejects it with the Error body.
    requireHostHeader: false,
  };
  const server = settings.tls ? createTlsServer(settings.tls, options) : createHttpServer(options);
  // On timeout, Connections decides what to do. A client that sends too slowly has already received 408.
  return server.setTimeout(settings.requestTimeout + 2 * TIMEOUT_CHECK_INTERVAL_MS);
}

/** The paths that {@link createHealthServer} serves. */
const HEALTH_PATHS = ['/health/live', '/health/ready', '/metrics'];

/** The minimum time between two log lines about closed connections. */
const DROP_LOG_INTERVAL_MS = 1000;

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
  const server = createServer(settings);
  server.maxConnections = MAX_HEALTH_CONNECTIONS;
  server.on('connection', (socket) => socket.unref());
  const rejections = new Rejections([], metrics);
  const connections = new Connections(server, rejections);
  server.on('clientError', (error, socket) => {
    connections.handleClientError(error, socket as Socket);
  });
  listenForRequests(server, connections, rejections, (request, response) => {
    if (HEALTH_PATHS.includes(pathOf(request.url ?? ''))) instance.routing(request, response);
    else rejections.reject(request, response, new NotFoundError());
  });
  return server.unref();
}

/**
 * Closes new connections beyond a limit, and logs it, at most one line per second.
 *
 * Lowers the limit if the process cannot open that many files (`ulimit -n`). Without file descriptors, Node.js
 * would close connections silently, and the service could not open files or database sessions.
 *
 * @param limit the maximum number of open connections
 */
export function limitConnections(server: Server, limit: number): void {
  const logger = new Logger('PlantStore');
  server.maxConnections = limit;
  server.once('listening', () => {
    const available = countFreeDescriptors() - RESERVED_DESCRIPTORS;
    if (available >= limit) return;
    server.maxConnections = Math.max(1, available);
    logger.warn(
      `The service accepts only ${server.maxConnections} connections instead of ${limit}, because it cannot open more files. Raise the limit of open files (ulimit -n), or lower MAX_CONNECTIONS.`,
    );
  });
  let lastLineAt = -Infinity;
  server.on('drop', () => {
    const now = performance.now();
    if (now - lastLineAt < DROP_LOG_INTERVAL_MS) return;
    lastLineAt = now;
    logger.warn(
      `Closed a new connection: the limit of ${server.maxConnections} open connections is reached (MAX_CONNECTIONS).`,
    );
  });
}

/** Returns infinity if the system does not report its limit. */
function countFreeDescriptors(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8');
    const limit = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Infinity);
    return limit - readdirSync('/proc/self/fd').length;
  } catch {
    return Infinity;
  }
}
