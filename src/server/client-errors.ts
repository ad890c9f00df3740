import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { MalformedRequestError, NotImplementedError, PlantStoreError } from '../errors';
import type { Connections } from './connections';
import { errorAnswer, rawErrorAnswer } from './raw-answer';
import { membersOf } from './request-rules';

/** An error of Node's HTTP parser. */
interface ClientError extends Error {
  readonly code?: string;
  /** The bytes that it could not parse, a Buffer. Fastify declares another type. */
  readonly rawPacket?: unknown;
  /** How many of these bytes it had parsed. */
  readonly bytesParsed?: number;
}

/** RFC 9112 section 3: a request line that is valid apart from its method. */
const UNKNOWN_METHOD = /^[!#$%&'*+.^_`|~0-9A-Za-z-]* [^ \r\n]+ HTTP\/1\.[01]\r?\n/;

/**
 * Answers requests that Node's HTTP parser refuses, where Node itself would send an empty body or
 * nothing: the Fastify option `clientErrorHandler`.
 */
export function answerClientError(
  error: ClientError,
  socket: Socket,
  connections: Connections,
): void {
  const { code = '' } = error;
  if (code === 'HPE_CLOSED_CONNECTION') {
    // The request before had `Connection: close`, in its trailer at the latest.
    connections.end(socket);
  } else if (code.startsWith('HPE_') || code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    connections.end(socket, () => rawErrorAnswer(toPlantStoreError(error)));
  } else {
    // Reset by the client, or no TLS.
    socket.destroy();
  }
}

/**
 * Handles the requests of a server, in whichever event Node emits them, as far as {@link Connections}
 * admits them. Answers those with an unknown `Expect` and `CONNECT` itself.
 */
export function handleRequests(
  server: Server,
  connections: Connections,
  handle: RequestListener,
): void {
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    if (connections.admit(request, response)) handle(request, response);
  });
  const meetExpectation = (request: IncomingMessage, response: ServerResponse): void => {
    if (!connections.admit(request, response)) return;
    const expectations = membersOf(request.headers.expect);
    if (expectations.some((expectation) => expectation !== '100-continue')) {
      const error = new PlantStoreError('expectationFailed');
      const { headers, body } = errorAnswer(error);
      response.writeHead(error.getStatus(), headers).end(body);
      return;
    }
    handle(request, response);
    if (expectations.length > 0) continueReading(request, response);
  };
  server.on('checkContinue', meetExpectation);
  server.on('checkExpectation', meetExpectation);
  server.on('connect', (_request: IncomingMessage, socket: Socket) => {
    // Node has removed its own listeners.
    socket.on('error', () => undefined);
    socket.on('timeout', () => socket.destroy());
    connections.end(socket, () => rawErrorAnswer(new NotImplementedError()));
  });
}

/** RFC 9112 section 6.3 */
function hasContent({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** Sends 100 Continue once the body is read, RFC 9110 section 10.1.1, and never after an answer. */
function continueReading(request: IncomingMessage, response: ServerResponse): void {
  const sendContinue = (): void => {
    if (!response.headersSent) response.writeContinue();
  };
  if (request.readableFlowing || !hasContent(request)) {
    sendContinue();
  } else {
    // An answer without 100 Continue closes the connection. Whether that comes must be known before
    // the next request is parsed, so this one is the last.
    response.shouldKeepAlive = false;
    request.once('resume', sendContinue);
  }
}

function toPlantStoreError({ code, rawPacket, bytesParsed }: ClientError): PlantStoreError {
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new PlantStoreError('requestTimeout');
    case 'HPE_HEADER_OVERFLOW':
      return new PlantStoreError('headersTooLarge');
    case 'HPE_INVALID_METHOD': {
      const line = Buffer.isBuffer(rawPacket) ? rawPacket.toString('latin1', bytesParsed) : '';
      return UNKNOWN_METHOD.test(line) ? new NotImplementedError() : new MalformedRequestError();
    }
    default:
      return new MalformedRequestError();
  }
}
