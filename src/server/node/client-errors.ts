import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { MalformedRequestError, NotImplementedError, PlantStoreError } from '../../errors';
import { rawErrorAnswer } from '../refusal';
import type { Connections } from './connections';

/**
 * Depends on what Node.js does and does not document, tried with 24.16 and 26.10: the codes of the
 * parser (`HPE_…`), that `rawPacket` is the segment with the fault, that a close in a trailer gives
 * `HPE_CLOSED_CONNECTION`, and that a server drops its listeners from the socket of a `CONNECT`.
 * `test/http/wire.e2e-spec.ts` fails when that changes.
 */

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
  if (code.startsWith('HPE_') || code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    connections.end(socket, () => rawErrorAnswer(toPlantStoreError(error), isHead(error)));
  } else {
    // Reset by the client, or no TLS.
    socket.destroy();
  }
}

/** Answers CONNECT, which Node would drop without an answer. */
export function answerConnect(server: Server, connections: Connections): void {
  server.on('connect', (_request, socket: Socket) => {
    // Node has removed its own listeners.
    socket.on('error', () => undefined);
    socket.on('timeout', () => socket.destroy());
    connections.end(socket, () => rawErrorAnswer(new NotImplementedError()));
  });
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

/**
 * Whether the refused request is a HEAD, whose answer has no body, RFC 9110 section 9.3.2: whether its
 * line is the last one behind an empty line. One that arrives in pieces is not recognised.
 */
function isHead({ rawPacket, bytesParsed }: ClientError): boolean {
  if (!Buffer.isBuffer(rawPacket)) return false;
  const [last = ''] = rawPacket.toString('latin1', 0, bytesParsed).split('\r\n\r\n').slice(-1);
  return last.startsWith('HEAD ');
}
