import { readdirSync, readFileSync } from 'node:fs';
import { createServer as createHttpServer, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { Logger } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { NotFoundError } from '../../plants/errors/errors';
import { LogThrottle } from '../../plants/http/failure-log';
import { pathOf } from '../../plants/http/request';
import type { Settings } from '../settings/environment';
import { Connections } from './connections';
import { Rejections } from './rejections';
import { listenForRequests } from './request-listener';
import type { Responses } from '../watch/responses';
import { createTlsServer } from './tls';

/** How often Node looks for requests that have timed out, in milliseconds. */
const TIMEOUT_CHECK_INTERVAL = 1000;

/** Descriptors left for what is opened later: sessions of the database, files, health checks. */
const RESERVED = 32;

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
    connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL,
    // Node answers a missing Host with an empty body; validateHeaders() responds with the Error body.
    requireHostHeader: false,
  };
  const server = settings.tls ? createTlsServer(settings.tls, options) : createHttpServer(options);
  // Connections decides about a stalled connection. A client that does not send gets 408 before.
  return server.setTimeout(settings.requestTimeout + 2 * TIMEOUT_CHECK_INTERVAL);
}

/** What {@link createHealthServer} serves, and how many connections it accepts. */
const HEALTH_PATHS = ['/health/live', '/health/ready', '/metrics'];
const HEALTH_CONNECTIONS = 8;

/**
 * Creates a server for health and metrics alone. It has connections of its own, for when all those of
 * the service are taken. It answers until the process ends, and does not delay the end.
 */
export function createHealthServer(
  instance: FastifyInstance,
  settings: Settings,
  responses: Responses,
): Server {
  const server = createServer(settings);
  server.maxConnections = HEALTH_CONNECTIONS;
  server.on('connection', (socket) => socket.unref());
  const rejections = new Rejections([], responses);
  const connections = new Connections(server, rejections);
  server.on('clientError', (error, socket) => {
    connections.fail(error, socket as Socket);
  });
  listenForRequests(server, connections, rejections, (request, response) => {
    if (HEALTH_PATHS.includes(pathOf(request.url ?? ''))) instance.routing(request, response);
    else rejections.reject(request, response, new NotFoundError());
  });
  return server.unref();
}

/**
 * Closes connections beyond a limit as they come, and logs how many, one line a second at most.
 *
 * The limit is lowered if the process may not open that many files (`ulimit -n`). At that point Node
 * would close connections silently, and the service could not open a file or a database session.
 *
 * @param limit connections open at the same time
 */
export function limitConnections(server: Server, limit: number): void {
  const logger = new Logger('PlantStore');
  server.maxConnections = limit;
  server.once('listening', () => {
    const descriptors = freeDescriptors();
    if (descriptors - RESERVED >= limit) return;
    server.maxConnections = Math.max(1, descriptors - RESERVED);
    logger.warn(
      `The service accepts only ${server.maxConnections} connections instead of ${limit}, because it may not open more files. Raise the limit of open files (ulimit -n), or lower MAX_CONNECTIONS.`,
    );
  });
  const throttle = new LogThrottle<string>(0, (reason, count) => {
    logger.warn(`Closed ${count} new connections within a second: ${reason}`);
  });
  server.on('drop', () => {
    throttle.allow(`${server.maxConnections} are open, which is the limit (MAX_CONNECTIONS).`);
  });
}

/** Infinite where the system does not say. */
function freeDescriptors(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8');
    const limit = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Infinity);
    return limit - readdirSync('/proc/self/fd').length;
  } catch {
    return Infinity;
  }
}
