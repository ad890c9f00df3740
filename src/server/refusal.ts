import { channel } from 'node:diagnostics_channel';
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import { errorChannel, InsufficientScopeError, type PlantStoreError } from '../errors';
import { securityHeaders } from '../http';
import { corsFields } from './cors';

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
 * Answers a request that the rules of its head refuse, before any router sees it.
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
  errorChannel.publish(error);
  const { headers, body } = errorAnswer(error);
  const status = error.getStatus();
  // RFC 9110 section 9.3.2
  const isHead = request.method === 'HEAD';
  response
    .writeHead(status, { ...headers, 'X-Request-Id': requestId, ...corsFields(request, origins) })
    .end(isHead ? undefined : body);
  const caller = error instanceof InsufficientScopeError ? error.caller : undefined;
  refusalChannel.publish({ request, requestId, status, caller } satisfies Refusal);
}

/** An error answer as it goes over the wire, for a socket without a response. It must be the last. */
export function rawErrorAnswer(error: PlantStoreError, isHead = false): string {
  errorChannel.publish(error);
  const { headers, body } = errorAnswer(error);
  const status = error.getStatus();
  // RFC 9110 section 6.6.1
  const dated = { Date: new Date().toUTCString(), ...headers, Connection: 'close' };
  const fields = Object.entries(dated).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${fields.join('')}\r\n`;
  return isHead ? head : head + body;
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
