import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { MalformedRequestError, NotImplementedError, PlantStoreError } from '../errors';
import { closeGently, type Connections } from './connections';
import { errorAnswer, rawErrorAnswer } from './raw-answer';

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
export async function answerClientError(
  error: ClientError,
  socket: Socket,
  connections: Connections,
): Promise<void> {
  // The fault may follow valid requests, whose answers come first.
  const unanswered = await connections.settled(socket);
  if (unanswered?.headersSent) socket.destroy();
  else refuse(socket, error);
}

/** Answers what Node does not emit as a request: `CONNECT`, and requests with `Expect`. */
export function answerUnroutable(server: Server, connections: Connections): void {
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    // Node has removed its own listeners.
    socket.on('error', () => undefined);
    socket.on('timeout', () => socket.destroy());
    socket.resume();
    void connections.settled(request.socket).then(() => {
      answerLast(socket, new NotImplementedError());
    });
  });
  const refuseExpectation = (request: IncomingMessage, response: ServerResponse): void => {
    // Node emits no 'request' event for it.
    connections.track(request, response);
    const error = new PlantStoreError('expectationFailed');
    const { headers, body } = errorAnswer(error);
    response.writeHead(error.getStatus(), headers).end(body);
  };
  server.on('checkExpectation', refuseExpectation);
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    // Node also matches 100-continue within a list.
    if (!/^100-continue$/i.test(request.headers.expect ?? '')) {
      refuseExpectation(request, response);
      return;
    }
    // RFC 9110 section 10.1.1: only when the body is read, and so never after an answer that does
    // not need it.
    request.once('resume', () => {
      if (!response.headersSent) response.writeContinue();
    });
    server.emit('request', request, response);
  });
}

function refuse(socket: Socket, error: ClientError): void {
  // What follows the last answer is read and ignored, so that the client is not reset.
  if (socket.writableEnded && error.code !== 'ECONNRESET') return;
  // Nobody can be answered on a connection that is reset, closed, or still in its TLS handshake.
  const handshaking = 'secureConnecting' in socket && socket.secureConnecting === true;
  if (error.code === 'ECONNRESET' || !socket.writable || handshaking) {
    socket.destroy();
    return;
  }
  answerLast(socket, toPlantStoreError(error));
}

/** Answers, and closes the connection. */
function answerLast(socket: Socket, error: PlantStoreError): void {
  socket.write(rawErrorAnswer(error));
  closeGently(socket);
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
