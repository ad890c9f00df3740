import { randomUUID } from 'node:crypto';
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { PlantStoreError } from '../../plants/errors/errors';
import { securityHeaders } from '../../plants/http/error.filter';
import type { Metrics } from '../watch/metrics';
import { corsHeaders } from './cors';
import { requestId } from './request-id';

/** Rejects requests before routing: requests that violate HTTP, and bytes that are not a request. */
export class Rejections {
  /**
   * @param origins origins whose pages may read the responses
   * @param metrics counts the errors
   */
  constructor(
    private readonly origins: readonly string[],
    private readonly metrics: Pick<Metrics, 'countError'>,
  ) {}

  /** Rejects a request and closes its connection. */
  reject(request: IncomingMessage, response: ServerResponse, error: PlantStoreError): void {
    const { status, body, headers } = createResponse(error);
    const id = requestId(request);
    const cors = corsHeaders(request, this.origins);
    response.writeHead(status, { ...headers, 'X-Request-Id': id, ...cors }).end(body);
    this.metrics.countError(error);
  }

  /** Writes an error response to a socket whose bytes the HTTP parser rejected. The socket must be closed afterwards. */
  rejectBytes(socket: Socket, error: PlantStoreError): void {
    const { status, body, headers } = createResponse(error);
    // RFC 9110 section 6.6.1
    const dated = { Date: new Date().toUTCString(), 'X-Request-Id': randomUUID(), ...headers };
    const lines = Object.entries(dated).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(
      `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n${body}`,
    );
    this.metrics.countError(error);
  }
}

function createResponse(error: PlantStoreError) {
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
