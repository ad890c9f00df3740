import { channel } from 'node:diagnostics_channel';
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { PlantStoreError } from '../../plants';
import { errorChannel, type ErrorEvent, securityHeaders } from '../../plants/program';
import { corsFields } from './cors';
import { endAndLinger } from './linger';
import { type LoggedRequest, requestId } from '../watch/request-context';

/** A request that was refused before any router saw it. */
export interface Refusal extends LoggedRequest {
  readonly status: number;
}

/** Node's diagnostics channel of the requests refused here; its messages are {@link Refusal}s. */
export const refusalChannel = channel('plant-store:refusal');

/**
 * Answers a request that no router sees, as the last of its connection. A client that still sends can
 * read the answer.
 *
 * @param origins whose pages may read the answer
 */
export function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  error: PlantStoreError,
  origins: readonly string[],
): void {
  const { status, body, headers } = answerOf(error, request);
  const id = requestId(request);
  response.writeHead(status, { ...headers, 'X-Request-Id': id, ...corsFields(request, origins) });
  if (request.method === 'HEAD') {
    // RFC 9110 section 9.3.2
    response.end();
  } else {
    request.resume();
    // When it is sent: the response may still wait for the socket.
    response.write(body, () => {
      endAndLinger(request.socket, Number(request.headers['content-length'] ?? 0));
    });
  }
  refusalChannel.publish({ id, raw: request, status } satisfies Refusal);
}

/** An error answer as it goes over the wire, for a socket without a response. It must be the last. */
export function rawErrorAnswer(error: PlantStoreError): string {
  const { status, body, headers } = answerOf(error, undefined);
  // RFC 9110 section 6.6.1
  const dated = { Date: new Date().toUTCString(), ...headers };
  const fields = Object.entries(dated).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${fields.join('')}\r\n${body}`;
}

function answerOf(error: PlantStoreError, request: IncomingMessage | undefined) {
  errorChannel.publish({ error, request } satisfies ErrorEvent);
  const body = JSON.stringify(error.body);
  const headers: Record<string, string | number> = {
    ...securityHeaders,
    ...error.headers,
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    Connection: 'close',
  };
  return { status: error.getStatus(), body, headers };
}
