import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { MalformedRequestError, NotImplementedError, PlantStoreError } from '../errors';
import { closeGently, type Connections } from './connections';
import { errorAnswer, rawErrorAnswer } from './raw-answer';

/** An error of Node's HTTP parser. */
interface ClientError extends Error {
  readonly code?: string;
  /** The bytes it stumbled over, a Buffer. Fastify declares something else. */
  readonly rawPacket?: unknown;
  /** How many of them it had understood. */
  readonly bytesParsed?: number;
}

/** RFC 9112 section 3: what is left of a request line that is fine but for its method. */
const UNKNOWN_METHOD = /^[!#$%&'*+.^_`|~0-9A-Za-z-]* [^ \r\n]+ HTTP\/1\.[01]\r?\n/;

/**
 * Answers what Node's HTTP parser refuses, which Node itself answers with an empty body or by
 * hanging up: the Fastify option `clientErrorHandler`.
 */
export async function answerClientError(
  error: ClientError,
  socket: Socket,
  connections: Connections,
): Promise<void> {
  // The fault may lie behind good requests, whose answers go first.
  const unanswered = await connections.settled(socket);
  if (unanswered?.headersSent) socket.destroy();
  else refuse(socket, error);
}

/** Answers what Node's HTTP server treats apart from requests: `CONNECT`, and those with `Expect`. */
export function answerUnroutable(server: Server, connections: Connections): void {
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    // Node has taken its own listeners off.
    socket.on('error', () => undefined);
    socket.on('timeout', () => socket.destroy());
    socket.resume();
    void connections.settled(request.socket).then(() => {
      answerLast(socket, new NotImplementedError());
    });
  });
  const refuseExpectation = (request: IncomingMessage, response: ServerResponse): void => {
    // Node announces it in this way alone.
    connections.begin(request, response);
    const error = new PlantStoreError('expectationFailed');
    const { headers, body } = errorAnswer(error);
    response.writeHead(error.getStatus(), headers).end(body);
  };
  server.on('checkExpectation', refuseExpectation);
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    // Node finds 100-continue among others too.
    if (!/^100-continue$/i.test(request.headers.expect ?? '')) {
      refuseExpectation(request, response);
      return;
    }
    // RFC 9110 section 10.1.1: not before somebody reads the body, and so not behind an answer that
    // was given without. (The guard comes after the body.)
    request.once('resume', () => {
      if (!response.headersSent) response.writeContinue();
    });
    server.emit('request', request, response);
  });
}

function refuse(socket: Socket, error: ClientError): void {
  // What comes behind the last answer is read, so that the client is not reset, and ignored.
  if (socket.writableEnded && error.code !== 'ECONNRESET') return;
  // A connection that was reset, is closed already, or never was secure, has nobody to answer.
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
