import { channel } from 'node:diagnostics_channel';
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { PlantStoreError } from '../../plants/errors/errors';
import { securityHeaders } from '../../plants/http/error.filter';
import { corsFields } from './cors';
import { endAndLinger } from './linger';
import { requestId } from './request-id';

/** An answer that no router gave. */
export interface Refusal {
  readonly error: PlantStoreError;
  /** Undefined when the HTTP parser refused it. */
  readonly request: { readonly id: string; readonly raw: IncomingMessage } | undefined;
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
  const { status, body, headers } = answerOf(error);
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
  refusalChannel.publish({ error, request: { id, raw: request } } satisfies Refusal);
}

/** An error answer as it goes over the wire, for a socket without a response. It must be the last. */
export function rawErrorAnswer(error: PlantStoreError): string {
  const { status, body, headers } = answerOf(error);
  refusalChannel.publish({ error, request: undefined } satisfies Refusal);
  // RFC 9110 section 6.6.1
  const dated = { Date: new Date().toUTCString(), ...headers };
  const fields = Object.entries(dated).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${fields.join('')}\r\n${body}`;
}

function answerOf(error: PlantStoreError) {
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
