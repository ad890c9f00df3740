import { randomUUID } from 'node:crypto';
import {
  createServer as createHttpServer,
  type IncomingHttpHeaders,
  type RequestListener,
  type Server,
} from 'node:http';
import { Logger } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Settings } from '../settings/environment';
import type { Recorder } from '../monitoring/recorder';
import { allowHalfOpen, Connections } from './connections';
import { RequestSteps } from './request-steps';
import { addRoutingHook, rewriteUrl } from './routing';
import { waitForClients } from '../process/shutdown';
import { createTlsServer } from './tls';

/** How often Node.js looks for requests whose time is over. */
const TIMEOUT_CHECK_INTERVAL_MS = 1000;

/** An IPv6 address in brackets, with or without a port, or an IPv4 address with a port. */
const ADDRESS_WITH_PORT = /^\[(.*)\](:\d+)?$|^([\d.]+):\d+$/;

/**
 * A connection may be without traffic for `REQUEST_TIMEOUT` and this time. Every response is sent within 20 seconds.
 */
const RESPONSE_TIME_MS = 30_000;

/** Creates the adapter of the service, for Nest's `bodyParser: false`. Errors below Nest have the Error body, too. */
export function createFastifyAdapter(settings: Settings, recorder: Recorder): FastifyAdapter {
  const { corsOrigins } = settings;
  const server = createServer(settings);
  const connections = new Connections(recorder);
  const steps = new RequestSteps(connections, recorder, corsOrigins);
  const adapter = new FastifyAdapter({
    genReqId: createRequestId,
    trustProxy: [...settings.trustedProxies],
    // Without a listener for `checkExpectation`, Node.js would respond to an unknown Expect without a body.
    serverFactory: (handle: RequestListener) => {
      const listener = connections.limit((request, response) => {
        const { 'x-forwarded-for': forwarded } = request.headers;
        // Fastify would not recognize a trusted proxy whose address has a port.
        if (forwarded) request.headers['x-forwarded-for'] = removePorts(String(forwarded));
        handle(request, response);
      });
      // Without a listener for `checkContinue`, Node.js would ask for the body before the token is checked.
      return server
        .on('request', listener)
        .on('checkExpectation', listener)
        .on('checkContinue', listener);
    },
    // While closing, a request on an open connection is handled like any other.
    return503OnClosing: false,
    // No Express middleware is used here.
    skipMiddie: true,
    rewriteUrl,
    clientErrorHandler: connections.handleError.bind(connections),
    frameworkErrors: (_error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
      steps.respondToMalformedTarget(request, reply);
    },
  });
  const instance = adapter.getInstance<FastifyInstance>();
  // Fastify leaves every body unread, whatever its type: `BodyGuard` reads it after the other guards.
  for (const method of instance.supportedMethods) {
    instance.addHttpMethod(method, { hasBody: false, overrideExisting: true });
  }
  instance.decorateRequest('receivedAt').decorate('healthPort', undefined);

  // Hooks run in this order: the headers are checked before the route.
  instance.addHook('onRequest', (request, reply, done) => {
    done(steps.begin(request, reply));
  });
  addRoutingHook(instance, corsOrigins);
  instance.addHook('onSend', (request, reply, content, done) => {
    done(null, steps.end(request, reply, content));
  });
  instance.addHook('preClose', () => {
    steps.isClosing = true;
    return waitForClients(server, settings);
  });
  return adapter;
}

function createServer(settings: Settings): Server {
  const { maxConnections } = settings;
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
  allowHalfOpen(server);
  server.maxConnections = maxConnections;
  server.once('drop', () => {
    new Logger('PlantStore').warn(
      `Closed a new connection: the limit of ${maxConnections} open connections is reached (MAX_CONNECTIONS). Further ones are only counted.`,
    );
  });
  return server.setTimeout(settings.requestTimeout + RESPONSE_TIME_MS);
}

/** Removes the ports that some proxies add to `X-Forwarded-For`: `192.0.2.1:80` or `[2001:db8::1]:80`. */
function removePorts(forwarded: string): string {
  const hops = forwarded.split(',').map((hop) => hop.trim().replace(ADDRESS_WITH_PORT, '$1$3'));
  return hops.join(', ');
}

/** Returns the client's `X-Request-Id` if it cannot harm a terminal or a log, otherwise a new id. */
function createRequestId({ headers }: { readonly headers: IncomingHttpHeaders }): string {
  const id = String(headers['x-request-id'] ?? '');
  return /^[!-~]{1,128}$/.test(id) ? id : randomUUID();
}
