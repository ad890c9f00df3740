import { channel } from 'node:diagnostics_channel';
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { PlantStoreError } from '../plants';
import {
  errorChannel,
  type ErrorEvent,
  InsufficientScopeError,
  securityHeaders,
} from '../plants/program';
import { corsFields } from './cors';
import { endAndLinger } from './linger';

/** A request that was refused before any router saw it. */
export interface Refusal {
  readonly request: IncomingMessage;
  readonly requestId: string;
  readonly status: number;
  /** Of a valid token that lacks the scope. */
  readonly caller: InsufficientScopeError['caller'];
}

/** Node's diagnostics channel of the requests refused here; its messages are {@link Refusal}s. */
export const refusalChannel = channel('plant-store:refusal');

/**
 * Answers a request that the rules of its head refuse, before any router sees it. With a `Connection`
 * field the answer is the last of its connection, and can be read by a client that still sends.
 *
 * @param origins whose pages may read the answer
 */
export function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  error: PlantStoreError,
  requestId: string,
  origins: readonly string[],
): void {
  errorChannel.publish({ error, request } satisfies ErrorEvent);
  const { headers, body } = errorAnswer(error);
  const status = error.getStatus();
  // RFC 9110 section 9.3.2
  const isHead = request.method === 'HEAD';
  const isLast = response.hasHeader('Connection');
  response.writeHead(status, {
    ...headers,
    'X-Request-Id': requestId,
    ...corsFields(request, origins),
  });
  if (isHead) {
    response.end();
  } else if (!isLast) {
    response.end(body);
  } else {
    request.resume();
    // Sent, and not before: the response may still wait for the socket.
    response.write(body, () => {
      endAndLinger(request.socket, Number(request.headers['content-length'] ?? 0));
    });
  }
  const caller = error instanceof InsufficientScopeError ? error.caller : undefined;
  refusalChannel.publish({ request, requestId, status, caller } satisfies Refusal);
}

/** An error answer as it goes over the wire, for a socket without a response. It must be the last. */
export function rawErrorAnswer(error: PlantStoreError): string {
  errorChannel.publish({ error, request: undefined } satisfies ErrorEvent);
  const { headers, body } = errorAnswer(error);
  const status = error.getStatus();
  // RFC 9110 section 6.6.1
  const dated = { Date: new Date().toUTCString(), ...headers, Connection: 'close' };
  const fields = Object.entries(dated).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${fields.join('')}\r\n${body}`;
}

function errorAnswer(error: PlantStoreError): {
  headers: Record<string, string | number>;
  body: string;
} {
  const body = JSON.stringify(error.body);
  return {
    headers: {
      ...securityHeaders,
      ...error.headers,
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': Buffer.byteLength(body),
    },
    body,
  };
}
